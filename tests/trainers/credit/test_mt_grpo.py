"""MT-GRPO: turns are compared by what is still to come, also where episodes differ in length."""

from dataclasses import replace

import numpy as np
import pytest
from credit_batches import advantage, batches, quick
from hypothesis import given
from hypothesis import strategies as st

from manyturn.trainers.credit.batch.turn_batch import TurnBatch
from manyturn.trainers.credit.pipeline import CreditConfig, credit


@quick
@given(batch=batches(unscorable=True, penalties=False), gamma=st.sampled_from([0.5, 1.0]))
def test_mt_grpo_compares_what_is_still_to_come_with_all_episodes_of_the_task(batch, gamma):
    """An episode that has ended has nothing to come: 0, which is in the mean."""
    result = credit(
        batch, CreditConfig.model_validate({"advantage": {"name": "mt_grpo", "std": False, "gamma": gamma}})
    )
    gains = replace(batch, parts={"gain": batch.parts["gain"] + 0.0 * batch.parts["outcome"]})
    to_come_K = gains.turn_return_K(gamma)
    for k in np.flatnonzero(batch.scorable_K):
        like_K = batch.scorable_K & (batch.group_K == batch.group_K[k])
        mean = to_come_K[like_K & (batch.turn_K == batch.turn_K[k])].sum() / (like_K & (batch.turn_K == 0)).sum()
        assert result.levels["turn"][k] == pytest.approx(to_come_K[k] - mean, abs=1e-9)


@quick
@given(seed=st.integers(0, 2**16), episodes=st.integers(1, 4), turns=st.integers(1, 5), std=st.booleans())
def test_mt_grpo_compares_turn_with_turn_where_lengths_are_equal(seed, episodes, turns, std):
    """As the paper has it, in plain loops."""
    gain_GET = np.random.default_rng(seed).normal(size=(2, episodes, turns))
    scale = gain_GET.std(axis=1, ddof=1, keepdims=True) + 1e-6 if std and episodes > 1 else 1.0
    compared = (gain_GET - gain_GET.mean(axis=1, keepdims=True)) / scale
    expected = np.array([[[row[k:].sum() for k in range(turns)] for row in group] for group in compared])
    gains = gain_GET.reshape(-1, turns)
    parts = {"outcome": np.zeros_like(gains).tolist(), "gain": gains.tolist()}
    batch = TurnBatch.from_episodes(parts, groups=[0] * episodes + [1] * episodes)
    np.testing.assert_allclose(advantage(batch, {"name": "mt_grpo", "std": std}), expected.ravel(), atol=1e-9)


@pytest.mark.parametrize("std", [False, True])
def test_mt_grpo_knows_that_going_on_was_worth_it(std):
    method = {"name": "mt_grpo", "std": std}
    parts = {"outcome": [[0], [0], [0, 0], [0, 0]], "gain": [[1.0], [1.0], [0.6, 0.6], [0.6, 0.6]]}
    short, _, *longer = advantage(TurnBatch.from_episodes(parts, groups=[0] * 4), {**method, "std": False})
    assert short < 0 < min(longer)
    costly = {"outcome": [[1.0], [0, 1.0], [0, 0, 0, 1.0]], "turn": [[-0.1], [-0.1] * 2, [-0.1] * 4]}
    one, two, _, *four = advantage(TurnBatch.from_episodes(costly, groups=[0] * 3), method)
    assert one > two > four[0], "a cost of turns makes the shorter of equal successes the better"
    assert max(four) < 0, "also of turns that no other episode took"
