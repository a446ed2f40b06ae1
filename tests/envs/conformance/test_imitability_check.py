"""An expert that knows what the agent cannot see costs a warm-up of an hour, unless it is noticed before."""

from pathlib import Path

import pytest

from manyturn.envs.conformance.check_runner import Finding, examined

TESTS = Path(__file__).parents[2]
MISTAKES = TESTS / "envs" / "mistakes.py"


def imitation(name: str) -> Finding:
    findings = [Finding(**values) for values in examined(name, {}, 12, 0, 60.0, ["made", "imitation"])]
    return next(finding for finding in findings if finding.check == "imitation")


def test_an_expert_that_knows_what_is_hidden_is_a_warning_with_two_tasks_and_both_actions():
    finding = imitation(f"{MISTAKES}:HiddenKey")
    assert finding.status == "warning" and finding.figures == {"ambiguous": 1.0, "shared": 1.0}
    assert finding.detail.count("'lift mat ") == 2 and finding.detail.count("train/") == 2
    assert "an agent cannot see what the expert goes by" in finding.detail


@pytest.mark.parametrize("env", [f"{MISTAKES}:SearchedKey", f"{MISTAKES}:Walk", f"{TESTS}/trainers/doors.py:Doors"])
def test_an_expert_that_goes_by_what_is_shown_is_accused_of_nothing(env):
    finding = imitation(env)
    assert finding.status == "passed" and finding.figures["ambiguous"] == 0.0
    assert finding.figures["shared"] > 0 or "no history that two tasks share" in finding.detail


def test_an_expert_with_two_right_actions_is_accused_of_nothing():
    finding = imitation(f"{MISTAKES}:AnyMat")
    assert finding.status == "passed" and finding.figures["ambiguous"] == 1.0 and "as soon" in finding.detail


def test_what_another_role_reads_is_hidden_from_this_one():
    assert imitation(f"{MISTAKES}:ToldKey").figures["ambiguous"] == 0.5


def test_without_an_expert_there_is_nothing_to_imitate():
    assert imitation(f"{TESTS}/envs/faulty.py:Stranger").status == "skipped"
