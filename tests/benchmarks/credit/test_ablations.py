"""An arm that differs from the others of its study in more than what it is about."""

import pytest

from benchmarks.credit import ablations
from manyturn.envs.contract.options.config_diff import changes

OWN = {"base": set(), "epo": {"objective.epo"}, "published": {"credit.rewards", "progress"}}
OWN |= {"spa": OWN["published"], "aepo": {"credit.advantage", "rollout.tempering"}}
OWN |= {arm: {"credit.advantage"} for arm in ("grpo", "gigpo", "situation_gae")}
OWN |= {arm: {"rollout.guidance"} for arm in ("hints", "critique")}
PAIRED = {"credit.advantage", "objective.aggregation", "objective.reference"}
OWN |= dict.fromkeys(("turn_dpo", "step_dpo", "copg"), PAIRED)
OWN |= {arm: {"credit.advantage", "rollout"} for arm in ("forks", "pav")} | {"agent_q": {*PAIRED, "judge", "rollout"}}


@pytest.mark.parametrize("study", ablations.plan()[1], ids=lambda study: study.name)
def test_arms_differ_in_their_own_stage_and_play_as_many_episodes_from_one_warmup(study):
    warmup, taught = ablations.warmup_of(study._replace(taught={}), 3), ablations.warmup_of(study, 3)
    differing = changes(warmup.model_dump(mode="json"), taught.model_dump(mode="json"))
    assert all(name.startswith("env.args") for name in differing), differing
    base = ablations.config_of(study, next(iter(study.arms)), 3)
    for arm in study.arms:
        config = ablations.config_of(study, arm, 3)
        differing = changes(base.model_dump(mode="json"), config.model_dump(mode="json"))
        kind = arm.partition(" ")[0]
        assert all(any(name.startswith(own) for own in OWN[kind] | {"steps"}) for name in differing), differing
        assert config.rollout.tasks * config.rollout.group == study.played.get(arm, study.episodes)
        assert (arm in study.played) == (config.rollout.branching is not None), "only branches draw fewer tokens"
        explored = config.progress.exploration.episodes if config.progress else 0
        assert config.steps * study.episodes + explored == base.steps * study.episodes
        for part in ("env", "model", "agent", "sampling", "warmup", "seed"):
            assert getattr(config, part) == getattr(warmup, part), part
    arms = study.arms.keys()
    assert all({one["arm"], one.get("against", one["arm"])} <= arms for one in study.expected)


def verdicts(expected, by_arm):
    lines = [{"arm": arm, "seed": n, "sampled": value} for arm, of in by_arm.items() for n, value in enumerate(of)]
    return ablations.verdict({"measure": "sampled", "arm": "ours", **expected}, lines, 5)["verdict"]


def test_a_verdict_needs_all_seeds_and_an_interval_that_leaves_out_nothing():
    better = {"against": "base", "sign": "+"}
    base = [0.4, 0.5, 0.45, 0.4, 0.5]
    assert verdicts(better, {"ours": [0.6, 0.7, 0.66, 0.6, 0.7], "base": base}) == "shown"
    assert verdicts(better, {"ours": [0.2, 0.3, 0.26, 0.2, 0.3], "base": base}) == "the contrary is shown"
    assert verdicts(better, {"ours": [0.5, 0.4, 0.45, 0.5, 0.4], "base": base}) == "not shown"
    assert verdicts(better, {"ours": [0.6, 0.7], "base": base}) == "2 of 5 seeds"
    within = {"least": 0.3, "most": 0.5}
    assert verdicts(within, {"ours": base}) == "held"
    assert verdicts(within, {"ours": [*base[:4], 0.6]}) == "not held"
