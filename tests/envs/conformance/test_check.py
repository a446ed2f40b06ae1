"""The conformance check must find each fault, blame the right thing, and never stop half way."""

from pathlib import Path

import pytest

from manyturn.envs.conformance.check import check

BROKEN = Path(__file__).parents[1] / "broken.py"
FAULTY = Path(__file__).parents[1] / "faulty.py"


def test_a_sound_environment_passes_everything():
    report = check(f"{BROKEN}:Sound", samples=20)
    assert report.passed, str(report)
    assert [f.check for f in report.findings if f.status == "skipped"] == []
    assert report["speed"].figures["turns/s"] > 100
    assert report["expert"].figures == {"train": 1.0, "validation": 1.0, "test": 1.0, "turns": 3.0}


@pytest.mark.parametrize("name", ["manyturn/GuessNumber-v0"])
def test_our_own_environments_pass(name):
    report = check(name, samples=20)
    assert report.passed, str(report)


@pytest.mark.parametrize(
    ("cls", "finding", "mend"),
    [
        ("GlobalChance", "determinism", "self.rng"),
        ("HashOrder", "other process", "sort sets"),
        ("LeftOver", "determinism", "begin()"),
        ("CrashesOnOddText", "odd actions", "self.invalid"),
        ("ForgetsInSnapshot", "snapshot", "save() and load()"),
        ("TextSnapshot", "snapshot", "return bytes"),
        ("PartsMissing", "rewards", "do not sum"),
        ("UnlistedPart", "rewards", "part_names does not list digit"),
        ("EarlyOutcome", "rewards", "another name"),
        ("BothEnds", "ends", "terminated and truncated"),
        ("Endless", "ends", "do not override step"),
        ("NoTurnKey", "info", "lacks turn"),
        ("OverfullProgress", "info", "from 0 to 1"),
        ("BadExpert", "expert", "fails"),
        ("TooEasy", "chance", "max_turns smaller"),
        ("SharedProblems", "splits", "split_of"),
        ("ChangingTasks", "tasks", "depend on its id alone"),
        ("OneIdForAll", "tasks", "unique"),
        ("UnplainParams", "tasks", "numbers, strings, lists"),
        ("Leaks", "leak", "contains"),
        ("OneAnchor", "anchors", "put the state"),
        ("AnchorOfChance", "anchors", "state alone"),
        ("Numbers", "made", "TextSpace"),
        ("ClosesOnce", "gymnasium", "check_env warns"),
        ("CannotClose", "close", "cannot close"),
    ],
)
def test_each_fault_is_found_and_its_mend_is_named(cls, finding, mend):
    report = check(f"{BROKEN}:{cls}", samples=8, only=[finding])
    assert not report.passed
    assert report[finding].status == "failed", str(report)
    assert mend in report[finding].detail
    assert "\n" not in report[finding].detail


def test_a_foreign_environment_is_examined_as_far_as_it_goes():
    report = check(f"{FAULTY}:Stranger", samples=2)
    assert report.passed, str(report)
    assert report["snapshot"].detail == "not a TextEnv"
    assert report["determinism"].status == "passed"


def test_an_environment_that_does_not_exist_is_one_finding():
    report = check("manyturn/NoSuch-v0")
    assert len(report.findings) == 1 and "did you mean" in report["made"].detail


def test_the_report_names_its_checks_when_asked_for_another():
    report = check("manyturn/NoSuch-v0")
    with pytest.raises(KeyError, match="made"):
        report["maid"]
    with pytest.raises(ValueError, match="did you mean 'snapshot'"):
        check("manyturn/GuessNumber-v0", only=["snapshots"])
    with pytest.raises(ValueError, match="samples"):
        check("manyturn/GuessNumber-v0", samples=0)
