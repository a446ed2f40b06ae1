"""The commands on which newcomers lost time: each says at once what is wrong, and never in a traceback."""

from pathlib import Path

import pytest

from manyturn.cli.new_env import new_env

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
    "bad.py:NanPart": ["'warmth'", "return a number"],
    "plain.py:OwnText": ["excludes the expert's 'go left'", "manyturn.TextSpace()"],
    "plain.py:OtherWord": ["info['valid']", "give info['understood']"],
}
NAMES = {  # what check is asked for: phrases of what it offers instead
    "bad.py": ["bad.py:Lamp"],
    "bad.py:Lmap": ["did you mean Lamp?"],
    "Maze": ["did you mean manyturn/Maze-v0?"],
}


def test_a_flag_by_the_word_of_other_gyms_is_never_read_as_understood(command):
    """Every action of theirs used to count as understood, and a penalty for those that are not charged none."""
    found = command("evaluate", "random", "--env", f"{HERE}/plain.py:OtherWord", "--limit", 4)
    said = " ".join((found.out + found.err).split())
    assert found.code == 5 and "info['valid']" in said and "give info['understood']" in said, said


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
@pytest.mark.parametrize(
    "words",
    [
        ("evaluate", "expert", "--limit", 4, "--workers", 2, "--timeout", 0.5, "--env"),
        ("train", "--env.workers", 2, "--env.timeout", 0.5, "--rollout.attempts", 1, "--env"),
    ],
    ids=["evaluate", "train"],
)
def test_an_environment_that_hangs_is_ended_and_its_line_named(command, tmp_path, monkeypatch, words):
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    found = command(*words, f"{HERE}/bad.py:Hangs")
    assert found.code and "no answer within 0.5 s, it hung at bad.py" in found.err and "in respond" in found.err
    assert len(found.err) < 500, "a traceback of all threads tells nobody where to look"


@pytest.mark.slow
def test_a_warm_up_that_teaches_nothing_ends_the_run_with_the_likely_cause(command, tmp_path):
    """The puzzle's expert knows the word, which cannot be imitated."""
    pytest.importorskip("torch")
    found = command("train", f"{HERE}/hangman.py:Hangman", "--out", tmp_path / "run", "--warmup.max-updates", 100)
    assert found.code == 3 and "without a success" in found.err and "warmup." in found.err, found.err
    assert "step " not in found.out, "no reinforcement begins from nothing"


@pytest.mark.slow
def test_replies_that_would_all_be_cut_are_refused_with_the_number_to_give(command, tmp_path):
    pytest.importorskip("torch")
    new_env("my_calendar", tmp_path, "tools")
    words = ["--sampling.max-tokens", 16, "--out", tmp_path / "run"]
    found = command("train", f"{tmp_path}/my_calendar.py:MyCalendar", *words)
    assert found.code == 2 and "sampling.max_tokens is 16" in found.err and "give --sampling.max-tokens" in found.err
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_is_nearly_right_is_answered_with_the_right_one(command, monkeypatch, name):
    monkeypatch.setenv("COLUMNS", "1000")
    found = command("check", f"{HERE}/{name}" if name != "Maze" else name)
    assert found.code and all(phrase in found.out + found.err for phrase in NAMES[name]), found.out + found.err
