"""A run that cannot fit must say so before it begins, with what would fit; and no other error is taken for that."""

import pytest
import torch

from manyturn.agents.engine.decoding import memory
from manyturn.agents.engine.decoding.memory import cache_shape, ran_out
from manyturn.agents.engine.engine_config import EngineContext, build_engine
from manyturn.agents.engine.engines.transformers import TransformersConfig
from manyturn.envs.contract.options.options import ConfigError

pytestmark = pytest.mark.versions


def asked(language, cache_gb: float | None, **context) -> int:
    """Bytes that the engine may keep."""
    made = build_engine(TransformersConfig(cache_gb=cache_gb), EngineContext(language.model, frozenset({0}), **context))
    return made._pool.pages * made._pool.shape.position_bytes * 16


def test_what_is_kept_is_bounded_by_what_was_asked_for_or_by_what_the_machine_can_spare(tiny, monkeypatch):
    language = tiny()
    each = cache_shape(language.model.config, torch.float32).position_bytes
    assert each == 2 * 2 * 32 * 4, "keys and values, layers, width, float32"
    assert asked(language, 0.01) <= 10e6 < asked(language, 0.01) + 16 * each
    assert asked(language, None, max_context=100) == 256 * 7 * 16 * each, "whole pages for each of max_batch"
    monkeypatch.setattr(memory, "main_memory", lambda: (20e6, 20e6))
    assert asked(language, None) == pytest.approx(10e6, rel=1e-3), "half of a small machine"


@pytest.mark.parametrize(
    ("total", "cache_gb", "max_context", "told"),
    [
        (1e5, None, 256, r"^training takes .* and the device has 100.0 kB: set learner.lora_rank to 16, or take a"),
        (20e6, 0.02, 256, r"^engine.cache_gb = 0.02 and the .* exceed the 20.0 MB of memory: set it to at most 0.01"),
        (
            20e6,
            0.005,
            60_000,
            r"engine.cache_gb = 0.005 is for them: lower agent.max_context to 9760, or set engine.cac",
        ),
        (20e6, None, 60_000, r"10.0 MB of the 20.0 MB of memory are for them: lower agent.max_context to 19520$"),
    ],
    ids=["no training", "too much asked for", "too little asked for", "too little there"],
)
def test_what_cannot_fit_is_refused_with_what_would(tiny, monkeypatch, total, cache_gb, max_context, told):
    language = tiny()
    monkeypatch.setattr(memory, "main_memory", lambda: (total, total))
    with pytest.raises(ConfigError, match=told) as refusal:
        asked(language, cache_gb, max_context=max_context)
    assert "\n" not in str(refusal.value)


def test_what_the_learner_keeps_of_frozen_layers_counts_and_can_be_lowered(tiny, monkeypatch):
    language = tiny()
    monkeypatch.setattr(memory, "main_memory", lambda: (1e9, 0.0))
    with pytest.raises(ConfigError, match=r"training takes 1.0 GB, .*: lower learner.states_gb = 1$"):
        asked(language, None, max_context=64, beside=1e9)
    assert asked(language, None, max_context=64, beside=0.5e9)


def test_rank_0_has_the_model_and_a_share_of_the_training_that_alone_would_not_fit(tiny, monkeypatch):
    """Rank 0 counted all of the training as its own, and refused the models that several ranks are for."""
    language = tiny()
    weights = sum(parameter.nbytes for parameter in language.model.parameters())
    monkeypatch.setattr(memory, "main_memory", lambda: (3.5 * weights, 0.0))
    with pytest.raises(ConfigError, match="training takes"):
        asked(language, None, max_context=64)
    alone = asked(language, None, max_context=64, learns=False)
    assert 0 < asked(language, None, max_context=64, rank_share=1 / 2) < alone, "weights, and half of four times them"
    with pytest.raises(ConfigError, match=r"training takes .* or train with more processes on other devices$"):
        asked(language, None, max_context=64, rank_share=1.0)


def test_a_model_that_only_plays_takes_no_memory_for_training(tiny, monkeypatch):
    language = tiny()
    weights = sum(parameter.nbytes for parameter in language.model.parameters())
    monkeypatch.setattr(memory, "main_memory", lambda: (weights * 3.0, 0.0))
    with pytest.raises(ConfigError, match="training takes"):
        asked(language, None, max_context=64)
    assert asked(language, None, max_context=64, learns=False)


def test_only_a_lack_of_memory_is_taken_for_one():
    def error_of(action) -> Exception:
        with pytest.raises(Exception) as raised:
            action()
        return raised.value

    assert ran_out(error_of(lambda: torch.empty(2**60)))
    assert ran_out(MemoryError()) and ran_out(torch.OutOfMemoryError("CUDA out of memory"))
    assert not ran_out(error_of(lambda: torch.empty(2) @ torch.empty(3)))
    assert not ran_out(ValueError("the story ran out of memory"))
