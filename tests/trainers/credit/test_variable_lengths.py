"""To go on where more is to be earned gets more credit than to stop, however many turns an episode has."""

from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import manyturn.credit as mc
from manyturn.trainers.credit.stages import ADVANTAGES

PUBLISHED = [{"name": "igpo", "baseline": baseline} for baseline in ("separate", "joint")]  # biased as in their papers
METHODS = [
    {"name": name, **more}
    for name in ADVANTAGES.names(lambda kind: kind.compares_returns_only is not True)
    # Of branches only, of what was learnt already, of a judge's verdicts.
    if name not in ("forks", "pav", "turn_dpo", "capo", "agent_q")
    for more in ([{}, {"std": False}] if "std" in ADVANTAGES.entry(name).config_type.model_fields else [{}])
]
GAIN = st.floats(0.05, 2.0)


def gaps(method, gains, counts):
    """At each turn but the last: the mean advantage where the policy goes on, less that where it stops.

    Args:
        gains: what turns 1, 2 and 3 earn.
        counts: episodes that have one, two and three turns.
    """
    rollouts = [
        mc.Rollout(
            group="task",
            rewards={"outcome": [0.0] * turns, "progress": list(gains[:turns])},
            anchors=[f"room {turn}" for turn in range(turns)],
            tokens=[1] * turns,
            columns={"action": [float(turn + 1 < turns) for turn in range(turns)]},
            token_columns={"value": [[0.0]] * turns},
        )
        for turns, count in enumerate(counts, start=1)
        for _ in range(count)
    ]
    advantage_K = mc.credit_rollouts(rollouts, mc.CreditConfig(advantage=method)).advantage_K
    begins = [0, *accumulate(len(rollout.anchors) for rollout in rollouts)]
    found = []
    for turn in range(2):
        at = [(begin + turn, len(r.anchors) > turn + 1) for begin, r in zip(begins, rollouts, strict=False)]
        here = [(advantage_K[k], on) for (k, on), r in zip(at, rollouts, strict=True) if len(r.anchors) > turn]
        went, stopped = ([a for a, on in here if on is which] for which in (True, False))
        found.append(np.mean(went) - np.mean(stopped))
    return found


@pytest.mark.parametrize("method", METHODS, ids=str)
@given(gains=st.tuples(GAIN, GAIN, GAIN), counts=st.tuples(*[st.integers(1, 3)] * 3))
@settings(max_examples=40, deadline=None)
def test_another_turn_that_earns_something_is_worth_taking_and_one_that_costs_is_not(method, gains, counts):
    assert min(gaps(method, gains, counts)) > 0
    losses = (gains[0], -gains[1], -gains[2])
    assert max(gaps(method, losses, counts)) < 0


def test_all_methods_that_separate_turns_are_tried():
    assert {method["name"] for method in METHODS} == {
        *("bilevel_gae", "dual_gae", "g2po", "gae", "gigpo", "hgpo", "igpo", "mt_grpo", "reinforce_pp", "rtmc"),
        *("situation_gae", "turn_gae"),
    }


@pytest.mark.parametrize("method", PUBLISHED, ids=str)
def test_the_published_forms_have_the_bias_that_their_page_names(method):
    assert min(gaps(method, (0.5, 0.5, 0.5), (2, 2, 2))) <= 1e-9


def options(name):
    return {"name": name, "stratum": "turns"} if name == "stratified" else name


@pytest.mark.parametrize("completeness", ["none", "residual_to_last"])
@pytest.mark.parametrize("name", ADVANTAGES.names(lambda kind: kind.compares_returns_only is True))
def test_spa_is_refused_where_an_advantage_sees_no_turns(name, completeness):
    with pytest.raises(ValueError, match=r"separates turns|leave spa out"):
        mc.CreditConfig(rewards=[{"name": "spa", "completeness": completeness}], advantage=options(name))
