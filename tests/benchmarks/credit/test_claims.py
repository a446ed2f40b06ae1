"""A claim that is tested against a base which differs from the method in more than the claim."""

import pytest

from benchmarks.credit import claims
from benchmarks.credit.settings import EPISODES
from manyturn.trainers.recipe.changes import changes


@pytest.mark.parametrize("claim", claims.plan()[1], ids=lambda claim: claim.name)
def test_base_and_method_differ_in_the_methods_own_stage_and_play_as_many_episodes(claim):
    base, method = (claims.config_of(claim, arm, 3) for arm in claims.ARMS)
    found = changes(base.model_dump(mode="json"), method.model_dump(mode="json"))
    assert found.keys() - {"steps"} == set(claim.own)
    assert base.steps * EPISODES == method.steps * EPISODES + claim.explored
    assert base.rollout.tasks * base.rollout.group == method.rollout.tasks * method.rollout.group == EPISODES
    warmup = claims.warmup_of(claim, 3)
    for part in ("env", "model", "agent", "sampling", "warmup", "seed"):
        assert getattr(base, part) == getattr(method, part) == getattr(warmup, part), part


def line(arm: str, seed: int, after: float) -> dict[str, object]:
    return {"arm": arm, "seed": seed, "after": after}


@pytest.mark.parametrize(
    ("gains", "told"),
    [
        ([0.1, 0.12, 0.11, 0.1], "shown"),
        ([0.1, -0.1, 0.05, -0.04], "not shown"),
        ([-0.1, -0.12, -0.11, -0.1], "the contrary is shown"),
        ([0.1], "not run"),
    ],
)
def test_a_verdict_asks_for_an_interval_that_leaves_0_out(gains, told):
    claim, lines = claims.plan()[1][0], []
    for seed, gain in enumerate(gains):
        lines += [line("base", seed, 0.5), line("method", seed, 0.5 + gain)]
    lines.append(line("base", 9, 0.9))  # a seed without its pair says nothing
    found = claims.verdict(claim, lines, planned=len(gains))
    assert claim.sign == "+" and found["verdict"] == told and found["seeds"] == list(range(len(gains)))
    if len(gains) > 1:
        assert claims.verdict(claim, lines, planned=8)["verdict"] == "4 of 8 seeds", "nothing is judged before its end"
