"""The conformance check must find each fault, blame the right thing, and never stop half way."""

from pathlib import Path

import psutil
import pytest

from manyturn.envs.conformance.check import Finding, Report, check, examined
from manyturn.envs.hosting import errand

BROKEN = Path(__file__).parents[1] / "broken.py"
FAULTY = Path(__file__).parents[1] / "faulty.py"
TRAPS = FAULTY.with_name("traps.py")


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
        ("TooEasy", "random", "max_turns smaller"),
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
    chosen = ["made", finding, "close"]
    # Not in a process of its own for each: that is a second of imports.
    report = Report(cls, tuple(Finding(**f) for f in examined(f"{BROKEN}:{cls}", {}, 8, 0, 60.0, chosen)))
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


@pytest.mark.parametrize(
    ("cls", "words"),
    [
        ("Leaves", "ended with status 0, as os._exit(0) does"),
        ("Crashes", "was ended by SIGSEGV"),
        ("Spins", "no answer within 0.5 s: it hung at traps.py, line"),
        ("Freezes", "in respond; let it answer sooner"),
        ("Sleeps", "in begin; let it answer sooner"),
        ("Stops", "said nothing that could be understood"),
    ],
)
def test_an_environment_that_ends_or_holds_up_its_process_is_a_finding(cls, words, monkeypatch):
    monkeypatch.setattr(errand, "_SLACK_SECONDS", 0.5)
    report = check(f"{TRAPS}:{cls}", samples=2, timeout=0.5)
    assert report["made"].status == "passed" and report["gymnasium"].status == "failed"
    assert words in report["gymnasium"].detail
    assert {f.status for f in report.findings[2:]} == {"skipped"}
    assert report["speed"].detail == "not tried, since 'gymnasium' ended the process"


def test_a_constructor_that_never_ends_is_a_finding():
    report = check(f"{TRAPS}:Unready", timeout=0.5)
    assert report["made"].status == "failed" and "in __init__" in report["made"].detail


def test_what_is_slow_but_answers_in_time_is_not_taken_for_hung():
    report = check(f"{TRAPS}:Slow", samples=1, only=["gymnasium", "other process"], timeout=1.0)
    assert report.passed, str(report)


def test_processes_that_are_left_behind_are_counted_and_ended():
    before = set(psutil.pids())
    report = check(f"{TRAPS}:Breeds", samples=2, only=["rewards"])
    assert report["processes"].status == "failed"
    assert report["processes"].figures["left"] > 10 and "'sleep 3600'" in report["processes"].detail
    left = [psutil.Process(pid) for pid in set(psutil.pids()) - before]
    assert not [process for process in left if process.cmdline()[:1] == ["sleep"]]


def test_helpers_that_end_with_their_environment_are_not_left_behind():
    assert check(f"{TRAPS}:Helped", samples=1, only=["rewards"]).passed
