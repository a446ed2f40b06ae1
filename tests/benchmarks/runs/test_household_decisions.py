"""Decisions that the household level asks for, judged at other places or by other words than the policy has."""

import json

import pytest

import manyturn as mt
from benchmarks.runs import household_decisions

SHORT = {
    "steps": 1,
    "model": {"name": "tiny", "width": 8, "layers": 1, "heads": 1, "sample_tasks": 200},
    "warmup": {"max_updates": 1, "check_every": 1, "check_episodes": 1, "until_success": 0.0},
    "rollout": {"tasks": 1, "group": 2, "rounds": 1},
    "learner": {"lr_warmup": 0},
    "evaluation": {"limit": 1, "every": 0},
}


@pytest.mark.deep  # a run of one step takes some seconds
def test_the_expert_takes_what_is_named_and_a_policy_without_training_does_not_know_it(tmp_path, monkeypatch):
    mt.train(recipe="household-tiny", out=tmp_path / "seed-4", seed=4, **SHORT)
    out = tmp_path / "decisions.json"
    monkeypatch.setattr("sys.argv", [household_decisions.__file__, str(tmp_path), "--tasks", "40", "--out", str(out)])
    household_decisions.main()
    [run] = json.loads(out.read_text())["runs"]
    assert run["seed"] == 4 and run["rules"]["by name"] == 1.0 > run["rules"]["by counting"] > 0.5
    for unit in ("token", "command"):
        judged = run["before"][unit]
        named, others = (judged[seen] for seen in ("named object in view", "only other objects in view"))
        assert named["all"]["n"] == 40  # each is taken once
        assert named["all"]["n"] + others["all"]["n"] == run["decisions"] == judged["all"]["n"]
        assert sum(row["n"] for things, row in others.items() if things != "all") == others["all"]["n"]
        assert 0 <= judged["all"]["sampled"] < 0.5  # several first words are possible
    assert run["before"]["listed"] < 0.01
