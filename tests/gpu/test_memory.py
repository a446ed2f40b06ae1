"""A GPU's memory that is not given back, or that runs out and takes the run with it."""

import asyncio
import gc
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedModel

from manyturn.agents.engine.engine import Engine, Reply, Sampling
from manyturn.agents.engine.engine_config import EngineContext, build_engine
from manyturn.agents.engine.engines.transformers import TransformersConfig
from manyturn.agents.engine.weight_source import ModuleWeights
from manyturn.agents.model.language_model import LanguageModel
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.trainers.learn.learner.learner import Learner
from manyturn.trainers.learn.learner.learner_config import LearnerConfig
from manyturn.trainers.learn.objective.objectives.clip import ClipConfig
from manyturn.trainers.learn.passes.samples import Sample

_PROMPT, _REPLY = 64, 8
_CACHE = 0.25  # 10^9 bytes


def model(device: torch.device, width: int = 64) -> PreTrainedModel:
    config = LlamaConfig(
        hidden_size=width,
        intermediate_size=2 * width,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=4,
        vocab_size=4096,
        bos_token_id=None,
        eos_token_id=None,
    )
    torch.manual_seed(0)
    return LlamaForCausalLM(config).to(device).eval()


def engine_of(made: PreTrainedModel, rows: int = 8) -> Engine:
    context = EngineContext(made, frozenset(), max_context=_PROMPT + _REPLY)
    return build_engine(TransformersConfig(max_batch=rows, cache_gb=_CACHE), context)


async def draw(engine: Engine, rows: int, prompt: int = _PROMPT) -> list[Reply]:
    """Replies to prompts of random tokens; no two begin alike."""

    async def reply(number: int) -> Reply:
        key = EpisodeKey(0, "gpu", str(number), 0)
        ids = np.random.default_rng(number).integers(0, engine.vocabulary, prompt).tolist()
        engine.open(key)
        try:
            return await engine.generate(key, 0, ids, Sampling(max_tokens=_REPLY))
        finally:
            engine.close(key)

    return list(await asyncio.gather(*map(reply, range(rows))))


def taken(device: torch.device) -> int:
    gc.collect()
    return torch.cuda.memory_allocated() if device.type == "cuda" else 0


def test_a_sleeping_engine_takes_no_memory_and_draws_the_same_when_it_wakes(device):
    made = model(device)
    before = taken(device)

    async def sleep_and_wake() -> None:
        engine = engine_of(made)
        first = await draw(engine, 4)
        awake = taken(device)
        await engine.sleep()
        if device.type == "cuda":  # libraries keep some megabytes for their own work
            assert taken(device) < min(before, awake - _CACHE * 1e9) + 1e8, "keys, values or weights stay"
        await engine.load(ModuleWeights(made), 1)
        await engine.wake()
        again = await draw(engine, 4)
        assert [reply.ids for reply in again] == [reply.ids for reply in first]
        assert [reply.version for reply in again] == [1] * 4
        await engine.shutdown()

    asyncio.run(sleep_and_wake())


def test_an_engine_that_runs_out_of_memory_draws_all_the_same(device):
    if device.type == "cpu":
        pytest.skip("a CPU's memory cannot be limited to what a pass needs")
    made = model(device, width=256)

    async def with_little() -> tuple[list[Reply], float]:
        engine = engine_of(made, rows=64)
        await draw(engine, 1)  # keys and values have their place
        with little_left(device, 8e6):
            replies = await draw(engine, 64)
        figures = engine.figures()
        await engine.shutdown()
        return replies, figures["out_of_memory"]

    replies, times = asyncio.run(with_little())
    assert len(replies) == 64 and all(len(reply.ids) == _REPLY for reply in replies)
    assert times > 0


def test_a_learner_that_runs_out_of_memory_learns_in_smaller_passes(device):
    if device.type == "cpu":
        pytest.skip("a CPU's memory cannot be limited to what a pass needs")
    language = LanguageModel(model(device, width=256), None, None)  # type: ignore[arg-type]  # no text
    learner = Learner(language, LearnerConfig(minibatch=64, micro_tokens=65536, packing="padding"), ClipConfig(), 1.0)
    rows = [sample(number) for number in range(64)]
    credit_T = np.random.default_rng(0).standard_normal(int(sum(row.reply_mask.sum() for row in rows)))
    learner.learn(learner.read(rows[:2]), credit_T[: int(sum(row.reply_mask.sum() for row in rows[:2]))], 1.0, (0,))
    step = learner.read(rows)
    with little_left(device, 1e8):
        means = learner.learn(step, credit_T, 1.0, (1,))
    assert learner.budget.times > 0 and learner.budget.tokens < 65536
    assert np.isfinite(means["grad_norm"])


def sample(number: int, length: int = 512) -> Sample:
    said = np.arange(length) % 2 == 1
    ids = np.random.default_rng(number).integers(0, 4096, length)
    return Sample(number, ids, said, np.where(said, -8.0, 0.0), np.where(said, 0, -1))


@contextmanager
def little_left(device: torch.device, room: float) -> Iterator[None]:
    """While a device has so many bytes left for this process."""
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    total = torch.cuda.get_device_properties(device).total_memory
    torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + room) / total)
    try:
        yield
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
