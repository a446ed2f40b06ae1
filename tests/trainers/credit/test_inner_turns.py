"""A plan earns what the action after it earns, and no group, anchor, estimator or penalty counts it as a turn."""

from dataclasses import replace

import numpy as np
import pytest
from credit_batches import batches, quick
from hypothesis import given
from hypothesis import strategies as st
from test_advantages import EVERY, per_token, run
from test_credit_properties import METHODS

from manyturn.trainers.credit.batch.decisions import Decisions
from manyturn.trainers.credit.batch.turn_batch import TurnBatch

REWARDS = [
    {"advantage": "grpo", "rewards": ["invalid_penalty"]},
    {"advantage": "gigpo", "rewards": [{"name": "gated", "gates": [{"threshold": 1}]}]},
]
STAGES = [{"advantage": method} for method in METHODS] + EVERY


def with_inner_turns(batch: TurnBatch, rng: np.random.Generator) -> TurnBatch:
    """The batch, where some actions give a part of their tokens to an inner turn; some have two, or one of no token."""
    inner_K = rng.integers(0, 3, len(batch.turn_K))
    source = np.repeat(np.arange(len(inner_K)), inner_K + 1)
    place = np.arange(len(source)) - (np.cumsum(inner_K + 1) - inner_K - 1)[source]
    is_inner, taken, tokens = place < inner_K[source], np.zeros_like(inner_K), np.zeros_like(source)
    for row, turn in enumerate(source):
        left = batch.tokens_K[turn] - taken[turn]
        tokens[row] = rng.integers(0, left + 1) if is_inner[row] else left
        taken[turn] += tokens[row]
    episode = batch.episode_K[source]
    return replace(
        batch,
        **{name: getattr(batch, name)[source] for name in ("group_K", "format_valid_K", "understood_K")},
        episode_K=episode,
        turn_K=np.arange(len(source)) - np.searchsorted(episode, episode),
        parts={name: np.where(is_inner, 0.0, part_K[source]) for name, part_K in batch.parts.items()},
        anchor_K=np.where(is_inner, 77, batch.anchor_K[source]),  # no anchor of theirs may group anything
        anchor_text=tuple(
            "inner" if own else batch.anchor_text[turn] for own, turn in zip(is_inner, source, strict=True)
        ),
        columns={name: np.where(is_inner, np.nan, column_K[source]) for name, column_K in batch.columns.items()},
        penalty_K=np.where(is_inner, 0.0, batch.penalty_K[source]),
        tokens_K=tokens,
        inner_K=is_inner,
    )


@pytest.mark.parametrize("stages", STAGES, ids=str)
@quick
@given(batch=batches(unscorable=True), seed=st.integers(0, 99))
def test_inner_turns_change_the_credit_of_no_token(stages, batch, seed):
    thoughtful = with_inner_turns(batch, np.random.default_rng(seed))
    plain, inner = run(batch, stages), run(thoughtful, stages)
    np.testing.assert_array_equal(per_token(thoughtful, inner), per_token(batch, plain))
    np.testing.assert_array_equal(inner.advantage_K[~thoughtful.inner_K], plain.advantage_K)
    assert len(inner.advantage_K) == len(thoughtful.turn_K) == len(inner.batch.turn_K)
    if plain.targets_T is not None:
        np.testing.assert_array_equal(inner.targets_T, plain.targets_T)
    assert inner.diagnostics == pytest.approx(plain.diagnostics, nan_ok=True)
    assert inner.memory == plain.memory


@pytest.mark.parametrize("stages", REWARDS, ids=str)
def test_rewards_stay_with_actions(stages):
    parts = {"outcome": [[0, 0, 0, 1], [0, 0]], "gain": [[0, 0.5, 0, 0], [0, 0]]}
    inner, valid = [[True, False, True, False], [True, False]], [[True, True, True, True], [True, False]]
    batch = TurnBatch.from_episodes(parts, [0, 0], anchors=["aabb", "aa"], understood=valid, inner=inner)
    earned = run(batch, stages)
    assert (earned.batch.reward_K[batch.inner_K] == 0).all() and (earned.batch.penalty_K[batch.inner_K] == 0).all()
    assert (
        earned.batch.episode_return_E().tolist()
        == run(rows_of_actions(batch), stages).batch.episode_return_E().tolist()
    )


def rows_of_actions(batch: TurnBatch) -> TurnBatch:
    return Decisions.of(batch).batch


def test_worked_numbers():
    """Two attempts: one plans, goes on, plans, wins; the other plans, and loses. gamma 0.5, no std.

    Returns of the actions are 0.5 and 1 in the first, 0 in the second; the hall's mean is 0.25. Each plan earns what
    the action after it earns: 0.5 for the episode, and 0.25 for the turn in the hall.
    """
    inner = [[True, False, True, False], [True, False]]
    batch = TurnBatch.from_episodes(
        [[0, 0, 0, 1], [0, 0]],
        ["task", "task"],
        anchors=[["hall", "hall", "yard", "yard"], ["hall", "hall"]],
        inner=inner,
    )
    earned = run(batch, {"advantage": {"name": "gigpo", "mode": "mean_norm", "gamma": 0.5}})
    assert earned.levels["episode"].tolist() == [0.5, 0.5, 0.5, 0.5, -0.5, -0.5]
    assert earned.levels["turn"].tolist() == [0.25, 0.25, 0.0, 0.0, -0.25, -0.25]
    assert earned.advantage_K.tolist() == [0.75, 0.75, 0.5, 0.5, -0.75, -0.75]
    assert earned.diagnostics["singleton_anchors"] == pytest.approx(1 / 3)


def test_an_episode_of_inner_turns_alone_or_out_of_order_is_refused():
    with pytest.raises(ValueError, match="episode 1"):
        Decisions.of(TurnBatch.from_episodes([[1], [0]], [0, 0], inner=[[False], [True]]))
    late = TurnBatch.from_episodes([[0, 1]], [0], inner=[[True, False]])
    with pytest.raises(ValueError, match="sort"):
        Decisions.of(replace(late, turn_K=late.turn_K[::-1]))
