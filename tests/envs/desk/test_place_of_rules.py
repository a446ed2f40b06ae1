"""The rules stand where an argument says, are the same everywhere, and held-out tasks can hide them."""

import pytest

from manyturn.envs.conformance.check_runner import check
from manyturn.envs.contract.registration.env_registry import make
from manyturn.envs.desk.env import RULES

ID = "manyturn/Desk-v0"


def shares_with_rules(rules: str, **args) -> dict[str, float]:
    """Split -> share of its first tasks whose first observation has rules."""
    env = make(ID, rules=rules, **args).unwrapped
    texts = {
        split: [env.reset(options={"task": task})[0] for task in env.tasks(split)[:30]]
        for split in ("train", "validation", "test")
    }
    return {split: sum(text.startswith("R1. ") for text in lines) / len(lines) for split, lines in texts.items()}


@pytest.mark.parametrize("user", ["ticket", "agenda"])
def test_held_out_tasks_hide_what_training_tasks_show(user: str) -> None:
    hidden, shown = {"validation": 0.0, "test": 0.0}, {"validation": 1.0, "test": 1.0}
    for rules, share in (("instructions", 0.0), ("training", 1.0), ("hidden", 0.0)):
        assert shares_with_rules(rules, user=user) == {"train": share, **hidden}
    assert shares_with_rules("ticket", user=user) == {"train": 1.0, **shown}
    half = shares_with_rules("half", user=user)
    assert 0.2 < half.pop("train") < 0.8 and half == hidden


@pytest.mark.parametrize("rules", RULES)
def test_the_place_of_the_rules_changes_no_task_and_no_result(rules: str) -> None:
    env, usual = make(ID, rules=rules, difficulty="tiny").unwrapped, make(ID, difficulty="tiny").unwrapped
    assert ("R1. " in env.instructions) == (rules == "instructions")
    assert "a rule below" not in env.instructions or rules == "instructions"
    for number in range(10):
        task = env.tasks("test")[number]
        assert task == usual.tasks("test")[number]
        text, info = env.reset(seed=0, options={"task": task})
        other, usual_info = usual.reset(seed=0, options={"task": task})
        assert text.endswith(other) and info["admissible"] == usual_info["admissible"]
        while "success" not in info:
            *_, info = env.step(env.expert())
        assert info["success"]


def test_a_misspelt_place_is_refused_with_all_that_there_are() -> None:
    with pytest.raises(ValueError, match="did you mean 'hidden'"):
        make(ID, rules="hiden")


@pytest.mark.deep
def test_the_conformance_check_passes() -> None:
    report = check(ID, {"difficulty": "tiny", "rules": "half"}, samples=3)
    assert report.passed, str(report)
