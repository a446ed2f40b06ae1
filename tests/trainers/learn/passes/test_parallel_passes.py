"""Passes side by side: the same update up to the order of sums, and the same bits whichever thread is first."""

import asyncio
import threading
from typing import Any

import pytest
import torch
from learner_steps import episodes_of, equal, learn, learner, weights

from manyturn.trainers.learn.heads.head_config import ProgressHeadConfig
from manyturn.trainers.recipe.config import configure
from manyturn.trainers.record.run_folder import read_metrics
from manyturn.trainers.run.loop.loop import train

RUN: dict[str, Any] = {
    "env": {"id": "manyturn/Maze-v0", "args": {"max_turns": 8}},
    "model": {"name": "tiny", "width": 16, "layers": 1, "heads": 2, "sample_tasks": 4},
    "warmup": {
        "episodes": 16,
        "batch": 4,
        "max_updates": 8,
        "check_every": 8,
        "check_episodes": 2,
        "must_succeed": False,
    },
    "sampling": {"max_tokens": 6},
    "rollout": {"tasks": 2, "group": 2},
    "learner": {"minibatch": 2, "old_logprobs": "engine"},
    "evaluation": {"limit": 2, "greedy": False},
    "steps": 2,
    "device": "cpu",
}


@pytest.mark.parametrize("options", [{}, {"packing": "trie"}, {"packing": "padding", "micro_tokens": 64}])
@pytest.mark.parametrize("threads", [2, 3])
def test_an_update_in_several_threads_is_the_update_in_one(options, threads):
    samples = episodes_of(6, noise=0.2)
    alone, several = (learner("clip", double=True, minibatch=3, **options) for _ in range(2))
    assert several.use_threads(threads)
    one, other = learn(alone, samples), learn(several, samples)
    assert other["grad_norm"] == pytest.approx(one["grad_norm"], rel=1e-9) and one["grad_norm"] > 0
    for ours, theirs in zip(weights(several), weights(alone), strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-9, rtol=0)


def test_the_order_in_which_threads_end_moves_no_bit():
    samples, ended = episodes_of(6, noise=0.2), list[list[torch.Tensor]]()
    for delayed in ("pass_0", "pass_1", "pass_2"):
        made = learner("clip")
        made.use_threads(3)

        def wait(*_: Any, delayed: str = delayed) -> None:
            if threading.current_thread().name == delayed:
                threading.Event().wait(0.05)

        made.model.get_decoder().register_forward_pre_hook(wait)
        learn(made, samples)
        ended.append(weights(made))
    assert equal(ended[0], ended[1]) and equal(ended[0], ended[2]) and not equal(ended[0], weights(learner("clip")))


def test_what_a_pass_would_change_besides_the_gradient_stays_in_one_thread():
    recomputing = learner("clip")
    recomputing.recompute()
    assert not recomputing.use_threads(2) and not learner("clip", ProgressHeadConfig(lr=0.05)).use_threads(2)
    assert not learner("clip").use_threads(1)


def test_two_runs_with_two_threads_end_with_the_same_bits_and_read_nothing_twice(tmp_path):
    before = torch.get_num_threads()
    runs = {
        name: asyncio.run(train(configure({**RUN, "threads": threads}), tmp_path / name))
        for name, threads in (("one", 1), ("two", 2), ("again", 2))
    }
    assert runs["two"]["weights"] == runs["again"]["weights"] and torch.get_num_threads() == before
    lines = {name: [line for line in read_metrics(tmp_path / name) if line["phase"] == "train"] for name in runs}
    for one, two in zip(lines["one"], lines["two"], strict=True):
        assert two["grad_norm"] == pytest.approx(one["grad_norm"], rel=0.05) and two["engine_gap"] < 1e-4
        # The engine's log-probabilities do for the ratio, so that the learner reads a few tokens for the alarm.
        assert "engine_ratio_max" not in one
