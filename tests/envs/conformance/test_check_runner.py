"""The conformance check must find each fault, blame the right thing, and never stop half way."""

from pathlib import Path

import psutil
import pytest

from manyturn.envs.conformance.check_runner import NAMES, Finding, Report, check, examined
from manyturn.envs.contract.registration.env_registry import UnknownArgument, UnknownEnv, make
from manyturn.envs.hosting.local import subprocess_call

pytestmark = pytest.mark.versions

BROKEN = Path(__file__).parents[1] / "broken.py"
FAULTY = Path(__file__).parents[1] / "faulty.py"
MISTAKES = FAULTY.with_name("mistakes.py")
TRAPS = FAULTY.with_name("traps.py")


def test_a_sound_environment_passes_everything():
    report = check(f"{BROKEN}:Sound", samples=20)
    assert report.passed, str(report)
    assert [f.check for f in report.findings if f.status != "passed"] == []
    assert report["speed"].figures["turns/s"] > 100
    assert report["expert"].figures == {"train": 1.0, "validation": 1.0, "test": 1.0, "turns": 3.0}


def found(name: str, *checks: str) -> Report:
    """Not in a process of its own for each: that is a second of imports."""
    return Report(name, tuple(Finding(**values) for values in examined(name, {}, 8, 0, 60.0, ["made", *checks])))


@pytest.mark.parametrize("name", ["manyturn/GuessNumber-v0"])
def test_our_own_environments_pass(name):
    report = check(name, samples=20)
    assert report.passed, str(report)


@pytest.mark.parametrize(
    ("cls", "finding", "fix"),
    [
        ("GlobalChance", "determinism", "turn 0: observation 'Noise"),
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
        ("SharedProblems", "splits", "manyturn.split_of(task.content), where content is the hash of its params"),
        ("ChangingTasks", "tasks", "depend on its id alone"),
        ("OneIdForAll", "tasks", "an id names one problem"),
        ("UnplainParams", "tasks", "numbers, strings, lists"),
        ("Leaks", "leak", "contains"),
        ("OneAnchor", "anchors", "put the state"),
        ("AnchorOfChance", "anchors", "state alone"),
        ("Numbers", "made", "TextSpace"),
        ("Unscorable", "rewards", "turn 1: the part 'digit' is nan, so"),
        ("Huge", "spaces", "and the space ends at 1,000,000: show less"),
        ("LeaksDigit", "leak", "contains '6'"),
        ("ClosesOnce", "close", "raised the second time (broken.py, line"),
        ("FixedSeed", "gymnasium", "check_env warns"),
        ("CannotClose", "close", "cannot close"),
    ],
)
def test_each_fault_is_found_and_its_fix_is_named(cls, finding, fix):
    report = found(f"{BROKEN}:{cls}", finding, "close")
    assert not report.passed
    assert report[finding].status == "failed", str(report)
    assert fix in report[finding].detail
    assert "\n" not in report[finding].detail


@pytest.mark.parametrize(
    ("env", "finding", "words"),
    [
        (f"{BROKEN}:TooEasy", "random", "nearly as well as the expert, so there is little to learn"),
        (f"{BROKEN}:Lengthy", "lengths", "an observation has 40,"),
        (f"{BROKEN}:Lengthy", "lengths", "the expert's longest reply has 801 characters (task"),
        (f"{MISTAKES}:Waits", "speed", "of it, as for a network, a program or sleep"),
        (f"{MISTAKES}:Dear", "expert", "return is never a success: put 'success' into info at the end"),
        (f"{FAULTY}:Stranger", "ends", "a limit of its own does not count them: set max_turns on the class"),
    ],
)
def test_what_may_be_meant_so_is_a_warning_that_fails_nothing(env, finding, words):
    report = found(env, finding)
    assert report.passed and report[finding].status == "warning" and words in report[finding].detail, str(report)


def test_coincidence_is_no_leak():
    assert found(f"{BROKEN}:Sums", "leak")["leak"].status == "passed"


@pytest.mark.parametrize(
    ("cls", "words"),
    [
        ("Plain", "an episode that terminated with a return above 0; to say otherwise put 'success' into info"),
        ("DearAndSaid", "return above -3.5"),
        ("Says", "as info['is_success'] says at the end"),
    ],
)
def test_the_rule_of_success_of_a_plain_environment_is_named(cls, words):
    assert words in found(f"{MISTAKES}:{cls}", "success")["success"].detail


@pytest.mark.parametrize(
    ("cls", "words"),
    [
        ("Blankless", "your action space excludes the admissible 'go left', whose ' ' is not in its charset: use"),
        ("BlanklessExpert", "your action space excludes the expert's 'go left', whose ' ' is not in its charset: use"),
        ("BlanklessTexts", "your observation space excludes its own 'Room"),
    ],
)
def test_spaces_that_exclude_what_is_said_are_named_with_the_fix(cls, words):
    report = found(f"{MISTAKES}:{cls}", "spaces", "gymnasium")
    assert report["spaces"].status == "failed" and words in report["spaces"].detail
    assert "manyturn.TextSpace()" in report["spaces"].detail and report["gymnasium"].status in ("passed", "skipped")


@pytest.mark.parametrize("cls", ["Tuple", "Nothing"])
def test_a_turn_that_is_none_is_no_fault_of_the_spaces(cls):
    report = found(f"{MISTAKES}:{cls}", "turns", "spaces")
    assert report["turns"].status == "failed" and "respond() returned" in report["turns"].detail
    assert report["spaces"].same_as == "turns"


def test_one_reason_for_many_failures_is_said_once_with_its_place():
    report = found(f"{MISTAKES}:Raises", *NAMES)
    assert str(report).count("KeyError") == 1 and "mistakes.py, line" in report["turns"].detail
    assert [finding.check for finding in report.failed] == ["turns"]
    assert "'turns' has failed: odd actions, spaces, determinism, anchors, other process" in str(report)


def test_what_is_found_is_said_before_the_next_check_begins():
    class Enough(Exception):
        pass

    def stop(finding: Finding) -> None:
        raise Enough(finding.check)

    with pytest.raises(Enough, match="made"):
        check(f"{TRAPS}:Spins", timeout=100.0, on_finding=stop)


def test_a_foreign_environment_is_examined_as_far_as_it_goes():
    report = check(f"{FAULTY}:Stranger", samples=2)
    assert report.passed, str(report)
    assert report["snapshot"].detail == "not a TextEnv"
    assert report["determinism"].status == "passed"


def test_a_class_of_a_file_is_checked_as_the_file_is():
    report = check(type(make(f"{BROKEN}:Sound")), samples=1, only=["tasks"])
    assert report.passed and report.env == f"{BROKEN}:Sound", str(report)


def test_a_name_that_is_no_environment_is_bad_input_and_no_finding():
    with pytest.raises(UnknownEnv, match="did you mean"):
        check("manyturn/Maze-v7")
    with pytest.raises(UnknownArgument, match="takes no argument 'size'"):
        check("manyturn/Maze-v0", {"size": 3})


def test_the_report_names_its_checks_when_asked_for_another():
    report = Report("x", (Finding("made", "passed"),))
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
    monkeypatch.setattr(subprocess_call, "_SLACK_SECONDS", 0.5)
    report = check(f"{TRAPS}:{cls}", samples=2, timeout=0.5)
    assert report["made"].status == "passed" and report["turns"].status == "failed"
    assert words in report["turns"].detail
    assert {f.status for f in report.findings[4:]} == {"skipped"}
    assert report["speed"].same_as == "turns" and "not judged" in report["speed"].detail


def test_a_constructor_that_never_ends_is_a_finding():
    report = check(f"{TRAPS}:Unready", timeout=0.5)
    assert report["made"].status == "failed" and "in __init__" in report["made"].detail


def test_what_is_slow_but_answers_in_time_is_not_taken_for_hung():
    report = check(f"{TRAPS}:Slow", samples=1, only=["gymnasium", "other process"], timeout=1.0)
    assert report.passed, str(report)


def test_processes_that_are_left_behind_are_counted_and_ended(tmp_path, monkeypatch):
    monkeypatch.setenv("TEST_OF", str(tmp_path))  # another run of these tests leaves some for a moment too
    report = check(f"{TRAPS}:Breeds", samples=2, only=["rewards"])
    assert report["processes"].status == "failed"
    assert report["processes"].figures["left"] > 10 and "'sleep 3604'" in report["processes"].detail
    sleeps = [process for process in psutil.process_iter(["cmdline"]) if process.info["cmdline"] == ["sleep", "3604"]]
    assert not [process for process in sleeps if process.environ().get("TEST_OF") == str(tmp_path)]


def test_helpers_that_end_with_their_environment_are_not_left_behind():
    assert check(f"{TRAPS}:Helped", samples=1, only=["rewards"]).passed
