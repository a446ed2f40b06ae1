"""IGPO whose outcomes have a scale of their own, although its paper normalises them together with the gains."""

import asyncio
from pathlib import Path

import numpy as np
import pytest
from credit_batches import advantage, batches, quick
from hypothesis import given
from hypothesis import strategies as st
from short_runs import short_run

from manyturn.recipes import load_recipe
from manyturn.trainers.credit.turn_batch import TurnBatch
from manyturn.trainers.run.loop import train

JOINT = {"name": "igpo", "baseline": "joint"}
ODD = f"{Path(__file__).parents[1].joinpath('odd_replies.py')}:OddReplies"


def by_hand(batch: TurnBatch, gamma: float, eps: float = 1e-6) -> np.ndarray:
    """The paper's advantage, turn by turn: every reward of the task against all of them, then discounted sums."""
    found = np.zeros(len(batch.turn_K))
    for group in set(batch.group_K.tolist()):
        members = [k for k in range(len(batch.turn_K)) if batch.group_K[k] == group and batch.scorable_K[k]]
        rewards = [batch.reward_K[k] for k in members]
        if len({batch.episode_K[k] for k in members}) < 2 or min(rewards) == max(rewards):
            continue
        mean, std = np.mean(rewards), np.std(rewards, ddof=1)
        for k in members:
            ahead = {j: batch.turn_K[j] - batch.turn_K[k] for j in members if batch.episode_K[j] == batch.episode_K[k]}
            found[k] = sum(gamma**n * (batch.reward_K[j] - mean) / (std + eps) for j, n in ahead.items() if n >= 0)
    return found - np.where(batch.scorable_K, batch.penalty_K, 0.0)


@quick
@given(batch=batches(unscorable=True), gamma=st.sampled_from([0.0, 0.5, 1.0]))
def test_gains_and_outcomes_share_one_mean_and_one_scale(batch, gamma):
    np.testing.assert_allclose(advantage(batch, {**JOINT, "gamma": gamma}), by_hand(batch, gamma), atol=1e-9)


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


def test_a_run_of_the_recipe_learns_otherwise_than_with_outcomes_apart(tmp_path):
    recipe, weights = load_recipe("igpo")["credit"], {}
    assert recipe["advantage"].pop("baseline") == "joint"
    for baseline in ("joint", "reward"):
        credit = {**recipe, "advantage": {**recipe["advantage"], "baseline": baseline}}
        config = short_run(env={"id": ODD}, credit=credit, steps=1, evaluation={"limit": 1})
        weights[baseline] = asyncio.run(train(config, tmp_path / baseline))["weights"]
    assert weights["joint"] != weights["reward"]
