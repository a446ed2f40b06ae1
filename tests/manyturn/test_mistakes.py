"""A first mistake in an environment must be named with its place and its fix, whichever command meets it first."""

import json
import re
from pathlib import Path

import pytest

from manyturn.envs.conformance.check_runner import NAMES, examined
from manyturn.envs.contract.env.turn import ContractError
from manyturn.envs.hosting.handle.env_handle import EnvError, EnvHandle

FILE = Path(__file__).parents[1] / "envs" / "mistakes.py"
TURNS = "return self.go_on(text, ...), self.invalid(...), self.unreadable(...), self.succeed(...) or self.fail(...)"


def line_of(cls: str, text: str) -> str:
    """The place of a line of a class as errors name it, but for the function."""
    lines = FILE.read_text().splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith(f"class {cls}("))
    return f"mistakes.py, line {next(n for n in range(start, len(lines)) if text in lines[n]) + 1}, in "


MISTAKES = [
    ("Tuple", "def respond", f"respond() returned a tuple: {TURNS}"),
    ("Text", "def respond", f"respond() returned a str: {TURNS}"),
    ("Nothing", "def respond", f"respond() returned None: {TURNS}"),
    ("Pair", "def begin", "begin() returned a tuple of 2: return the first observation alone, a str"),
    ("TextPart", "self.go_on", "the reward part 'bonus' is '0.1': give a number, such as bonus=1.0"),
    ("NoPart", "self.go_on", "the reward part 'bonus' is None: give a number"),
    ("Flag", "self.go_on", "the reward part 'done' is True: give a number"),
    ("Bytes", "self.go_on", "the observation of a turn is b'Left.': give text, a str"),
    ("Letters", "def admissible", "admissible() returned a str: return a list of texts"),
    ("NoRng", "def begin", "begin() takes 2 positional arguments but 3 were given"),
    ("Raises", "missing", "KeyError: 'missing'"),
    ("OldStep", "def step", "step() returned a tuple of 4: return observation, reward, terminated, truncated, info"),
]


@pytest.mark.parametrize(("cls", "line", "fix"), MISTAKES, ids=[cls for cls, *_ in MISTAKES])
def test_what_an_environment_returns_wrongly_is_named_with_its_line_and_its_fix(cls, line, fix):
    handle = EnvHandle(f"{FILE}:{cls}")
    with pytest.raises(EnvError) as found:
        handle.reset(handle.tasks("train")[0], 0)
        handle.step("go left")
    told = str(found.value)
    assert line_of(cls, line) in told and fix in told and "train/0" in told, told
    assert "\n" not in told


@pytest.mark.parametrize(
    ("cls", "fix"),
    [
        ("NoSuper", "its __init__() does not call super().__init__()"),
        ("Generates", "tasks() returned a generator: return a list of mt.Task"),
        ("Dicts", "tasks() returned a list with a dict: return mt.Task objects alone"),
        ("TrainAlone", "tasks('validation') raised KeyError: give that split, or name those that there are"),
    ],
)
def test_what_is_wrong_before_the_first_episode_is_named_with_its_fix(cls, fix):
    with pytest.raises(ContractError, match=re.escape(fix)):
        handle = EnvHandle(f"{FILE}:{cls}")
        for split in handle.splits:
            handle.tasks(split)
    failed = [found for found in examined(f"{FILE}:{cls}", {}, 2, 0, 60.0, NAMES) if found["status"] == "failed"]
    assert fix in failed[0]["detail"] and all(found["same_as"] for found in failed[1:]), failed


def test_a_turn_made_by_hand_is_held_to_the_same():
    handle = EnvHandle(f"{FILE}:ByHand")
    handle.reset(handle.tasks("train")[0], 0)
    with pytest.raises(EnvError, match=r"line \d+, in respond\): the reward part 'bonus' is '0.1'"):
        handle.step("go left")


@pytest.mark.parametrize(
    ("words", "cls", "line", "fix"),
    [
        (("evaluate", "expert", "--limit", 2, "--env"), "Tuple", "def respond", TURNS),
        pytest.param(
            ("evaluate", "expert", "--limit", 2, "--workers", 1, "--env"),
            *("Raises", "missing", "KeyError: 'missing'"),
            marks=pytest.mark.slow,
        ),
        (("train",), "Raises", "missing", "KeyError: 'missing'"),
    ],
    ids=["evaluate", "evaluate in workers", "train"],
)
def test_the_place_and_the_fix_reach_the_command_line(command, tmp_path, monkeypatch, words, cls, line, fix):
    monkeypatch.chdir(tmp_path)
    ended = command(*words, f"{FILE}:{cls}")
    assert ended.code == 5 and ended.err.count("\n") == 1
    assert line_of(cls, line) in ended.err and fix in ended.err


def test_play_names_the_place(command, monkeypatch):
    answers = iter(["go left", ":quit"])
    monkeypatch.setattr("builtins.input", lambda prompt: next(answers))
    ended = command("play", f"{FILE}:Raises")
    assert ended.code == 1 and line_of("Raises", "missing") in ended.out


def test_debugging_shows_the_traceback_of_an_evaluation(command, monkeypatch):
    monkeypatch.setenv("MANYTURN_DEBUG", "1")
    with pytest.raises(Exception, match="ended in an error"):
        command("evaluate", "expert", "--env", f"{FILE}:Raises", "--limit", 2)


def test_debugging_shows_the_traceback_of_a_check_once(command, monkeypatch):
    monkeypatch.setenv("MANYTURN_DEBUG", "1")
    ended = command("check", f"{FILE}:Raises", "--samples", 2)
    assert ended.code == 1 and ended.err.count('return {}["missing"]') == 1, ended.err
    assert line_of("Raises", "missing") in ended.out


def evaluated(command, cls: str, tmp_path, *words: object) -> dict:
    ended = command("evaluate", "expert", "--env", f"{FILE}:{cls}", "--limit", 2, "--out", tmp_path, *words)
    assert ended.code == 0, ended.err
    return json.loads((tmp_path / "summary.json").read_text())


@pytest.mark.parametrize(("cls", "whose"), [("Blankless", "the expert's"), ("BlanklessInfo", "the admissible")])
def test_a_space_that_excludes_what_the_environment_itself_says_is_no_failure_of_a_policy(command, cls, whose):
    ended = command("evaluate", "expert", "--env", f"{FILE}:{cls}", "--limit", 2)
    assert ended.code == 5
    said = "your action space excludes {} 'go left', whose ' ' is not in its charset: use manyturn.TextSpace()"
    assert said.format("the admissible") in ended.err or said.format(whose) in ended.err


def test_what_a_plain_environment_pays_decides_unless_it_sets_a_bound(command, tmp_path):
    success = {
        cls: evaluated(command, cls, tmp_path / cls)["success"]["mean"] for cls in ("Plain", "Dear", "DearAndSaid")
    }
    assert success == {"Plain": 1.0, "Dear": 0.0, "DearAndSaid": 1.0}


def test_a_reward_wrapper_does_not_decide_what_success_is(command, tmp_path):
    wrapped = evaluated(command, "Plain", tmp_path, "--wrappers", '[{name = "turn_cost", cost = 5.0}]')
    assert wrapped["success"]["mean"] == 1.0


def test_admissible_as_a_method_of_a_plain_environment_is_listed():
    handle = EnvHandle(f"{FILE}:Plain")
    assert handle.reset(handle.tasks("train")[0], 0).admissible == ["go left", "go right"]
    assert handle.step("go right").admissible == ["go left", "go right"]
