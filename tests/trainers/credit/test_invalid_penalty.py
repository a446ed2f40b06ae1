"""What a penalty charges, and what figures say of it: an answer of the environment must not pass for bad format."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from manyturn.trainers.credit.batch.turn_batch import TurnBatch
from manyturn.trainers.credit.config import CreditConfig
from manyturn.trainers.credit.pipeline import credit

PENALTY = {"name": "invalid_penalty", "coef": 0.1}
BOTH = ("format_valid", "understood")
LENGTHS = st.lists(st.integers(1, 5), min_size=2, max_size=6)


@st.composite
def failures(draw) -> TurnBatch:
    """Episodes of two tasks that all fail, with any flags."""
    lengths = draw(LENGTHS)
    flags = {name: [draw(st.lists(st.booleans(), min_size=n, max_size=n)) for n in lengths] for name in BOTH}
    groups = [draw(st.sampled_from("ab")) for _ in lengths]
    anchors = [[draw(st.sampled_from("xyz")) for _ in range(n)] for n in lengths]
    return TurnBatch.from_episodes([[0.0] * n for n in lengths], groups, anchors=anchors, **flags)


def earned(batch: TurnBatch, advantage="gigpo", **options):
    return credit(batch, CreditConfig(rewards=[{**PENALTY, **options}], advantage=advantage))


@given(failures())
def test_an_environments_nothing_happens_is_never_charged_as_broken_format(batch):
    polite = replace(batch, format_valid_K=np.ones_like(batch.format_valid_K))
    found = earned(polite)
    assert not found.batch.penalty_K.any() and found.diagnostics["penalised_turns"] == 0
    assert not found.advantage_K.any()
    assert (earned(batch).batch.penalty_K == np.where(batch.format_valid_K, 0, 0.1)).all()


@given(failures())
def test_a_broken_format_is_charged_whatever_the_environment_makes_of_it(batch):
    for understood_K in (np.ones_like(batch.understood_K), np.zeros_like(batch.understood_K)):
        charged_K = earned(replace(batch, understood_K=understood_K)).batch.penalty_K > 0
        assert (charged_K == ~batch.format_valid_K).all()


@given(failures())
def test_the_penalty_for_what_is_not_understood_does_not_look_at_the_format(batch):
    found = earned(batch, flag="understood")
    assert (found.batch.penalty_K == np.where(batch.understood_K, 0, 0.1)).all()


@given(failures(), st.sampled_from(BOTH), st.sampled_from(["grpo", "gigpo", "rloo"]))
def test_groups_that_all_fail_have_no_signal_even_with_a_penalty(batch, flag, advantage):
    found = earned(batch, advantage, flag=flag)
    assert found.diagnostics["groups_without_signal"] == 1.0
    flags_K = getattr(batch, f"{flag}_K")
    mixed = [group for group in set(batch.group_K) if len(set(flags_K[batch.group_K == group])) == 2]
    assert found.diagnostics["penalty_alone"] == len(mixed) / len(set(batch.group_K))
    assert np.isclose(found.diagnostics["penalised_turns"], (~flags_K).mean())


def test_a_group_that_its_returns_tell_apart_is_not_the_penaltys():
    batch = TurnBatch.from_episodes(
        [[0, 1], [0, 0], [0, 0], [0, 0]], groups="aabb", format_valid=[[True, False], [True, True]] * 2
    )
    found = earned(batch, "grpo").diagnostics
    assert (found["groups_without_signal"], found["penalty_alone"], found["penalised_turns"]) == (0.5, 0.5, 0.25)
    free = credit(batch, CreditConfig(advantage="grpo")).diagnostics
    assert (free["groups_without_signal"], free["penalty_alone"], free["penalised_turns"]) == (0.5, 0.0, 0.0)


@given(failures())
def test_grounding_is_paid_for_what_was_understood_and_not_for_a_kept_format(batch):
    batch = replace(batch, columns={"contribution": np.zeros(len(batch.turn_K))})
    spa = CreditConfig(rewards=[{"name": "spa", "beta": 0.5, "wage": "by_turn"}], advantage="mt_grpo")
    assert (credit(batch, spa).batch.parts["grounding"] == 0.5 * batch.understood_K).all()
