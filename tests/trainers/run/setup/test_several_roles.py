"""Training where an episode has several agents: whose rewards are whose, whose weights learn, and what is refused."""

import asyncio
import json

import numpy as np
import pytest
from duet_runs import DUET, duet_run

from manyturn.agents.records.episode_rows import read_turns
from manyturn.api.named_policy import find_policy
from manyturn.envs.contract.options.options import ConfigError
from manyturn.report.run import run_head
from manyturn.trainers.record.checkpoint import newest_checkpoint, read_tensors
from manyturn.trainers.record.run_folder import read_metrics
from manyturn.trainers.run.loop.loop import train

OWN = {"caller": "truth", "liar": "lies"}


def run(path, **changes):
    return asyncio.run(train(duet_run(**changes), path))


@pytest.mark.deep
@pytest.mark.parametrize("roles", [pytest.param({}, marks=pytest.mark.slow), OWN], ids=["shared", "own"])
def test_each_agent_learns_from_its_own_rewards(tmp_path, roles):
    """The caller must tell the truth and the liar must not: rewards of the other, or of both, would teach neither."""
    summary = run(
        tmp_path / "run",
        roles=roles,
        model={"name": "tiny", "width": 32, "layers": 2, "heads": 2, "sample_tasks": 8},
        warmup={"episodes": 30, "noise": 1.0, "until_success": 0.45, "max_updates": 80, "check_every": 5},
        learner={"lr": 4e-3, "minibatch": 24, "old_logprobs": "engine"},
        evaluation={"limit": 30, "repeats": 3},
        steps=28,
        checkpoint_every=28,
    )
    assert summary["difference"]["ci_low"] > 0 and summary["after"]["success"] > 0.8, summary
    last = [line for line in read_metrics(tmp_path / "run") if line["phase"] == "train"][-3:]
    assert min(np.mean([line[f"{agent}/return"] for line in last]) for agent in OWN) > 0.85, last


def test_credit_stands_at_the_turns_of_those_who_earned_it(tmp_path):
    choosing = {"agent": {"only_admissible": True}, "sampling": {"max_tokens": 6}}
    run(tmp_path / "run", roles=OWN, steps=1, **choosing)
    turns = read_turns(next((tmp_path / "run" / "turns").glob("*.parquet")))
    assert {row["role"] for row in turns} == set(OWN)
    for agent, part in (("caller", "caller.true"), ("liar", "liar.false")):
        groups: dict[str, list[tuple[float, float]]] = {}
        for row in turns:
            if row["role"] == agent:
                end = next(r for r in turns if (r["task"], r["member"], r["turn"]) == (row["task"], row["member"], 1))
                groups.setdefault(row["task"], []).append((dict(end["reward_parts"])[part], row["advantage"]))
        for rows in groups.values():
            earned, advantage = np.array(rows).T
            expected = (earned - earned.mean()) / (earned.std(ddof=1) + 1e-6)
            np.testing.assert_allclose(advantage, expected, atol=1e-5)


def test_a_run_of_several_policies_resumes_to_the_bit(tmp_path):
    warmup = {"episodes": 30, "noise": 1.0, "max_updates": 30, "check_every": 30, "must_succeed": False}
    whole = run(tmp_path / "whole", roles=OWN, warmup=warmup)
    (tmp_path / "whole" / "checkpoints" / "step_000003" / "manifest.json").unlink()
    (tmp_path / "whole" / "summary.json").unlink()
    again = asyncio.run(train(None, tmp_path / "whole", resume=True))
    assert again["weights"] == whole["weights"] and set(whole["weights"]) == set(OWN.values())
    assert whole["weights"]["truth"] != whole["weights"]["lies"]


def test_who_plays_by_script_does_not_learn_and_has_no_weights(tmp_path):
    summary = run(tmp_path / "run", roles={"caller": "me", "liar": "expert"})
    assert set(summary["weights"]) == {"me"}
    newest, _ = newest_checkpoint(tmp_path / "run" / "checkpoints")
    assert sorted(path.name for path in newest.iterdir() if path.suffix != ".json") == [
        "learner-me.safetensors",
        "model-me",
    ]
    assert read_tensors(newest, "me")
    assert read_metrics(tmp_path / "run")[-1]["liar/return"] == 1.0 or "me/loss" in read_metrics(tmp_path / "run")[-1]


def test_an_evaluation_plays_the_cast_that_was_trained(tmp_path):
    run(tmp_path / "run", roles=OWN)
    found = find_policy(str(tmp_path / "run"), {})
    assert set(found.policy.roles) == set(OWN)
    hashes = json.loads((tmp_path / "run" / "summary.json").read_text())["weights"]
    assert all(hashes[name][:16] in found.policy.name for name in OWN.values())


def test_rounds_keep_a_group_in_which_one_agents_returns_differ(tmp_path):
    """What both earn together may be the same in every episode of a game in which one's gain is the other's loss."""
    from manyturn.agents.play.episode import Ending, Episode, TurnRecord
    from manyturn.agents.play.role_episodes import EpisodeRoles
    from manyturn.agents.tokens.episode_key import EpisodeKey
    from manyturn.envs.contract.tasks.task import Task
    from manyturn.trainers.play.rollout.dynamic_sampling import Refill

    def zero_sum(member, x):
        parts = {"a.outcome": x, "b.outcome": -x}
        turns = [
            TurnRecord("", "", "", True, True, 0.0, given, "", None, (0, 0), role=agent)
            for agent, given in (("a", {}), ("b", parts))
        ]
        return Episode(EpisodeKey(0, "s", "t", member), Task("t", "train", {}), turns, Ending.COMPLETED, success=False)

    episodes = [zero_sum(0, 1.0), zero_sum(1, -1.0)]
    both = EpisodeRoles(("a", "b"), ("a", "b"))
    assert Refill(1, 2, 3, both).after(episodes).missing == 0
    assert Refill(1, 2, 3).after(episodes).missing == 1


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"roles": {"caller": "a"}}, "those who act in .* are caller, liar: give each a policy"),
        ({"roles": {"caller": "a", "liar": "b", "third": "b"}}, "give each a policy"),
        ({"roles": {"caller": "../x", "liar": "b"}}, "roles.caller"),
        ({"roles": OWN, "env": {"id": "manyturn/Maze-v0"}}, "one role; leave the section out"),
    ],
)
def test_roles_that_make_no_sense_are_refused(tmp_path, changes, told):
    with pytest.raises(ConfigError, match=told):
        run(tmp_path / "run", **changes)


def test_the_report_draws_the_curve_of_each_agent_and_policy(tmp_path):
    run(tmp_path / "run", roles=OWN)
    curves = {curve["title"]: [one["name"] for one in curve["series"]] for curve in run_head(tmp_path / "run").curves}
    assert curves["Return"] == ["return", "caller: return", "liar: return"]
    assert curves["Entropy"] == ["truth: entropy", "lies: entropy"]


def test_a_policy_without_a_turn_in_a_step_learns_nothing_and_stops_nobody(tmp_path):
    """With one turn an episode the liar never speaks."""
    summary = run(tmp_path / "run", roles=OWN, env={"id": DUET, "args": {"max_turns": 1}}, steps=1)
    assert summary["updates"]["truth"] > 0 == summary["updates"]["lies"]
    assert "lies/loss" not in read_metrics(tmp_path / "run")[-1]
