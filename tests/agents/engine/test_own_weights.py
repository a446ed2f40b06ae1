"""An engine that draws with weights which its learner is changing, or that mixes two versions in a reply."""

import asyncio
from typing import Any

import pytest
import torch
from peft import LoraConfig, get_peft_model
from tiny_engine import key, make_engine, within

from manyturn.agents.engine.engine import Reply, Sampling
from manyturn.agents.engine.engine_config import EngineContext, build_engine
from manyturn.agents.engine.engines.transformers import TransformersConfig
from manyturn.agents.engine.weight_source import ModuleWeights
from manyturn.agents.model.model_internals import without_peft_warning

pytestmark = pytest.mark.versions


def _with_adapters(language):
    with without_peft_warning():
        language.model = get_peft_model(
            language.model, LoraConfig(r=2, target_modules="all-linear", init_lora_weights=False)
        )
    return language


@pytest.mark.parametrize("lora", [False, True])
def test_weights_that_a_learner_changes_are_drawn_with_once_they_are_loaded_and_not_before(tiny, lora):
    language = _with_adapters(tiny()) if lora else tiny()
    context = EngineContext(language.model, language.template.end_ids, lora, own_weights=True)
    engine: Any = build_engine(TransformersConfig(), context)
    shared = {id(mine) for mine in engine._model.parameters()} & {id(tensor) for tensor in language.model.parameters()}
    assert bool(shared) == lora, "what adapters lie on is there once"

    async def draw(drawer) -> Reply:
        drawer.open(key(0))
        reply = await drawer.generate(key(0), 0, language.template.opening("", "The red room."), Sampling(max_tokens=4))
        drawer.close(key(0))
        return reply

    async def play() -> list[Reply]:
        found = [await draw(engine)]
        with torch.no_grad():
            for tensor in language.model.parameters():
                if tensor.requires_grad:
                    tensor.mul_(1.5)
        found.append(await draw(engine))
        await engine.load(ModuleWeights(language.model), 3)
        return [*found, await draw(engine), await draw(make_engine(language))]

    first, again, newer, learners = within(20, play())
    assert again.ids == first.ids and again.logprobs == pytest.approx(first.logprobs, abs=1e-4)
    assert newer.version == 3 and newer.logprobs != pytest.approx(first.logprobs, abs=1e-2)
    assert newer.ids == learners.ids and newer.logprobs == pytest.approx(learners.logprobs, abs=1e-4)


def test_merged_adapters_draw_what_the_learner_thinks_before_and_after_a_load_and_a_sleep(tiny):
    language = _with_adapters(tiny())
    context = EngineContext(language.model, language.template.end_ids, lora=True)
    engine: Any = build_engine(TransformersConfig(merge_adapters=True), context)
    assert not any(".lora_" in name for name, _ in engine._model.named_parameters())
    prompt = language.template.opening("", "The red room.")

    async def draw(drawer) -> Reply:
        drawer.open(key(0))
        reply = await drawer.generate(key(0), 0, prompt, Sampling(max_tokens=4))
        drawer.close(key(0))
        return reply

    async def play() -> list[Reply]:
        pairs = [await draw(engine), await draw(make_engine(language))]
        with torch.no_grad():
            for tensor in language.model.parameters():
                if tensor.requires_grad:
                    tensor.mul_(1.5)
        await engine.sleep()
        assert engine.wake_bytes > 0
        await engine.load(ModuleWeights(language.model), 1)
        await engine.wake()
        return [*pairs, await draw(engine), await draw(make_engine(language))]

    merged, apart, newer, newer_apart = within(20, play())
    for one, other in ((merged, apart), (newer, newer_apart)):
        assert one.ids == other.ids and one.logprobs == pytest.approx(other.logprobs, abs=1e-4)
    assert newer.logprobs != pytest.approx(merged.logprobs, abs=1e-2)


def test_a_reply_that_new_weights_interrupt_is_drawn_whole_by_them_with_its_own_noise(tiny):
    language = tiny()
    engine = make_engine(language)
    long = Sampling(max_tokens=40)

    async def play(interrupt: bool) -> Reply:
        engine.open(key(0))
        asking = asyncio.create_task(engine.generate(key(0), 0, language.template.opening("", "Go."), long))
        while interrupt and not engine.figures().get("redrawn_tokens"):
            await asyncio.sleep(0)
            if engine.drawing:
                await engine.load(ModuleWeights(language.model), engine.version + 1)
        reply = await asking
        engine.close(key(0))
        return reply

    whole, interrupted = within(20, play(False)), within(20, play(True))
    assert interrupted.version > whole.version and len(whole.ids) > 1
    assert (interrupted.ids, interrupted.logprobs) == (whole.ids, whole.logprobs)
