"""The engine vllm with adapters: those that it draws with are the learner's newest."""

import asyncio
from collections.abc import Iterator

import pytest
import torch
from peft import LoraConfig, get_peft_model
from tiny_for_vllm import LONG, ask, gap, tiny_for_vllm

from manyturn.agents.engine.engine_config import EngineContext, build_engine
from manyturn.agents.engine.vllm.engine import VllmEngine
from manyturn.agents.engine.vllm.options import VllmConfig
from manyturn.agents.engine.weight_source import ModuleWeights
from manyturn.agents.model.language_model import LanguageModel

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800), pytest.mark.usefixtures("vllm_package")]


@pytest.fixture(scope="module")
def language(maze_texts) -> LanguageModel:
    language = tiny_for_vllm(maze_texts)
    settings = LoraConfig(r=6, lora_alpha=12, target_modules="all-linear", bias="none")
    language.model = get_peft_model(language.model, settings)  # type: ignore[assignment]
    return language


def changed(language: LanguageModel, seed: int) -> ModuleWeights:
    noise = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in language.model.named_parameters():
            if "lora_B" in name:
                parameter.copy_(0.2 * torch.randn(parameter.shape, generator=noise))
    return ModuleWeights(language.model)


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


def test_adapters_are_the_learners_after_each_transfer_and_after_a_sleep(language, runner):
    engine = build_engine(VllmConfig(kv_gib=0.25), EngineContext(language.model, language.template.end_ids, lora=True))
    assert isinstance(engine, VllmEngine)
    try:
        replies = [runner.run(ask(engine))]
        assert gap(language, replies[-1]) < 1e-3
        for version in (1, 2):
            runner.run(engine.load(changed(language, version), version))
            replies.append(runner.run(ask(engine)))
            assert replies[-1].version == version and gap(language, replies[-1]) < 1e-3
            with language.model.disable_adapter():
                assert gap(language, replies[-1]) > 0.05, "these adapters would not be missed"
        runner.run(engine.sleep())
        runner.run(engine.wake())
        assert runner.run(ask(engine)).ids == replies[-1].ids
        assert len(list(engine._folder.path.glob("adapters-*"))) == 1 and len(LONG) > 256
    finally:
        runner.run(engine.shutdown())
