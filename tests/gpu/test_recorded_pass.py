"""Recorded passes of an engine that draw something else than passes that are launched operation by operation."""

import asyncio
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from manyturn.agents.engine import transformers_engine
from manyturn.agents.engine.engine import Reply, Sampling
from manyturn.agents.engine.transformers_engine import TransformersEngine
from manyturn.agents.tokens.episode_key import EpisodeKey

SMALL: dict[str, Any] = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 3, "vocab_size": 512}
HEADS: dict[str, Any] = {"num_attention_heads": 4, "num_key_value_heads": 2}


async def drawn(model: LlamaForCausalLM, turns: int = 3) -> list[Reply]:
    """Replies of episodes that ask at times of their own, so that prompts are read while others draw."""
    engine = TransformersEngine(model, frozenset({7}), max_batch=16, reproducible=False)

    async def episode(number: int) -> list[Reply]:
        key, replies = EpisodeKey(0, "gpu", str(number), 0), list[Reply]()
        ids = np.random.default_rng(number).integers(8, engine.vocabulary, 5 + 9 * number).tolist()
        engine.open(key)
        for turn in range(turns):
            replies.append(await engine.generate(key, turn, ids, Sampling(max_tokens=4 + 5 * number)))
            ids = [*ids, *replies[-1].ids, 9, 10, 11]
        engine.close(key)
        return replies

    try:
        return [reply for replies in await asyncio.gather(*map(episode, range(7))) for reply in replies]
    finally:
        await engine.shutdown()


def test_recorded_passes_draw_what_launched_ones_do(device, monkeypatch):
    torch.manual_seed(0)
    model = LlamaForCausalLM(LlamaConfig(**SMALL, **HEADS, bos_token_id=None, eos_token_id=None)).to(device).eval()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        recorded = asyncio.run(drawn(model))
    assert not [str(each.message) for each in seen if "can be recorded" in str(each.message)]
    monkeypatch.setattr(transformers_engine, "recorder_for", lambda device: None)
    for ours, theirs in zip(recorded, asyncio.run(drawn(model)), strict=True):
        assert ours.ids == theirs.ids
        assert ours.logprobs == pytest.approx(theirs.logprobs, abs=1e-3)
