"""The commands on which newcomers lost time: each says at once what is wrong, and never in a traceback."""

from pathlib import Path

import pytest

HERE = Path(__file__).parent

EVALUATIONS = {  # policy and environment: the exit code, and phrases of what evaluate says
    ("expert", "plain.py:OwnText"): (5, ["excludes the expert's 'go left'", "manyturn.TextSpace()"]),
    ("random", "plain.py:OwnText"): (0, ["nothing to choose from", "admissible()"]),
    ("expert", "plain.py:Judged"): (0, ["100.0%"]),
    ("expert", "bad.py:Raises"): (5, ["KeyError: 'missing'", ", in respond)"]),
}
REFUSED = {  # environment: phrases of what train says before its first update
    "bad.py:Overlapping": ["'test/0', which is 'train/0'"],
    "bad.py:SameIds": ["two tasks with the id '0'"],
    "bad.py:Raises": ["KeyError: 'missing'", ", in respond)"],
    "bad.py:GivesTuple": ["respond() returned a tuple", "self.go_on(text, ...)"],
    "bad.py:WrongRole": ["'middle'", "the roles are left, right"],
}
NAMES = {  # what check is asked for: phrases of what it offers instead
    "bad.py": ["bad.py:Lamp"],
    "bad.py:Lmap": ["did you mean Lamp?"],
    "Maze": ["did you mean manyturn/Maze-v0?"],
}


@pytest.mark.slow
@pytest.mark.parametrize(("policy", "env"), EVALUATIONS)
def test_evaluate_says_what_is_wrong(command, policy, env):
    code, phrases = EVALUATIONS[policy, env]
    found = command("evaluate", policy, "--env", f"{HERE}/{env}", "--limit", 4)
    said = " ".join((found.out + found.err).split())
    assert found.code == code and all(phrase in said for phrase in phrases), said


@pytest.mark.slow
@pytest.mark.parametrize("env", REFUSED)
def test_train_says_what_is_wrong_before_it_learns(command, tmp_path, env):
    pytest.importorskip("torch")
    found = command("train", f"{HERE}/{env}", "--out", tmp_path / "run")
    assert found.code and "warm-up" not in found.out and found.err.count("\n") == 1
    assert all(phrase in found.err for phrase in REFUSED[env]), found.err


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_is_nearly_right_is_answered_with_the_right_one(command, monkeypatch, name):
    monkeypatch.setenv("COLUMNS", "1000")
    found = command("check", f"{HERE}/{name}" if name != "Maze" else name)
    assert found.code and all(phrase in found.out + found.err for phrase in NAMES[name]), found.out + found.err
