"""IGPO that normalises other rewards together than its papers: gains and outcomes separately, or all jointly."""

import asyncio
from pathlib import Path

import numpy as np
import pytest
from credit_batches import advantage, batches, quick
from hypothesis import given
from hypothesis import strategies as st
from short_runs import short_run

from manyturn.recipes import load_recipe
from manyturn.trainers.credit.batch.turn_batch import TurnBatch
from manyturn.trainers.run.loop.loop import train

JOINT = {"name": "igpo", "baseline": "joint"}
SEPARATE = {"name": "igpo", "baseline": "separate"}
ODD = f"{Path(__file__).parents[1].joinpath('odd_replies.py')}:OddReplies"


def by_hand(batch: TurnBatch, baseline: str, gamma: float, eps: float = 1e-6) -> np.ndarray:
    """The papers' advantage, turn by turn: each reward of the task against those of its kind, then discounted sums."""
    K = len(batch.turn_K)
    last_K = np.array([batch.turn_K[k] == batch.turn_K[batch.episode_K == batch.episode_K[k]].max() for k in range(K)])
    normed_K, found_K = np.zeros(K), np.zeros(K)
    for group in set(batch.group_K.tolist()):
        inside_K = (batch.group_K == group) & batch.scorable_K
        if len(set(batch.episode_K[inside_K].tolist())) < 2:
            continue
        for kind_K in (last_K, ~last_K) if baseline == "separate" else (np.full(K, True),):
            rewards = batch.reward_K[inside_K & kind_K]
            if len(rewards) > 1 and rewards.min() < rewards.max():
                normed_K[inside_K & kind_K] = (rewards - np.mean(rewards)) / (np.std(rewards, ddof=1) + eps)
    for k in range(K):
        ahead_K = np.where(batch.episode_K == batch.episode_K[k], batch.turn_K - batch.turn_K[k], -1)
        found_K[k] = sum(gamma**n * normed_K[j] for j, n in enumerate(ahead_K.tolist()) if n >= 0)
    return found_K - np.where(batch.scorable_K, batch.penalty_K, 0.0)


@pytest.mark.parametrize("baseline", ["separate", "joint"])
@quick
@given(batch=batches(unscorable=True), gamma=st.sampled_from([0.0, 0.5, 1.0]))
def test_rewards_are_normalised_with_those_that_the_paper_puts_them_together_with(baseline, batch, gamma):
    method = {"name": "igpo", "baseline": baseline, "gamma": gamma}
    np.testing.assert_allclose(advantage(batch, method), by_hand(batch, baseline, gamma), atol=1e-9)


def test_a_last_turn_that_gains_nothing_is_no_gain_among_others():
    """Its reward is the outcome. Counted as a gain of 0 it would be below those of turns that learnt something."""
    parts = {"outcome": [[0, 0, 1], [0, 0, 0]], "gain": [[0.2, 0.4, 0], [0.4, 0.2, 0]]}
    batch = TurnBatch.from_episodes(parts, groups=["a", "a"])
    ours, theirs = advantage(batch, {"name": "igpo", "gamma": 0.0}), advantage(batch, {**SEPARATE, "gamma": 0.0})
    assert theirs[[2, 5]].tolist() == pytest.approx([0.7071, -0.7071], abs=1e-3), "the outcomes alone"
    assert (ours[[2, 5]] < theirs[[2, 5]] - 1).all()
    assert theirs[:2].tolist() == pytest.approx([-0.866, 0.866], abs=1e-3)


def test_an_outcome_beside_small_gains_is_not_blown_up_to_their_size():
    """Apart, gains of a thousandth weigh as much as outcomes of 1; together they weigh a thousandth of them."""
    parts = {"outcome": [[0, 1], [0, 0]], "gain": [[-0.001, 0], [0.001, 0]]}
    batch = TurnBatch.from_episodes(parts, groups=["a", "a"])
    apart, together = advantage(batch, {"name": "igpo"}), advantage(batch, {**JOINT, "gamma": 0.0})
    assert apart[0] < apart[1] / 2, "the small loss at its first turn takes a good part of the success away"
    assert together[1] == pytest.approx(1.5, abs=0.01)
    assert abs(together[0] - together[2]) < 0.01


def test_turns_of_equal_successes_get_the_credit_that_the_paper_gives_them():
    """Unlike everywhere else in this project: the success is compared with the turns before it."""
    batch = TurnBatch.from_episodes([[0, 0, 1]] * 2, groups=["a", "a"])
    np.testing.assert_allclose(advantage(batch, JOINT), [0, 0.645, 1.291] * 2, atol=1e-3)
    assert not advantage(batch, {"name": "igpo"}).any()


# Enough for replies that end by themselves: one that is cut never acts, and outcomes would not differ.
SPEAKING = {"episodes": 24, "must_succeed": False, "batch": 4, "max_updates": 80, "check_every": 80, "lr": 1e-2}


def test_a_run_of_the_recipe_learns_otherwise_than_with_another_scale(tmp_path):
    recipe, weights = load_recipe("igpo")["credit"], {}
    assert recipe["advantage"].pop("baseline") == "separate"
    for baseline in ("separate", "joint", "reward"):
        credit = {**recipe, "advantage": {**recipe["advantage"], "baseline": baseline}}
        config = short_run(env={"id": ODD}, credit=credit, steps=1, evaluation={"limit": 1}, warmup=SPEAKING)
        weights[baseline] = asyncio.run(train(config, tmp_path / baseline))["weights"]
    assert len(set(weights.values())) == 3
