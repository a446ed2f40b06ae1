"""A failed check must not fail another: of two faults exactly these two are named, and their consequences are none."""

from itertools import combinations
from pathlib import Path

import pytest

from manyturn.envs.conformance.check_runner import NAMES, Finding, Report, examined

BROKEN = Path(__file__).parents[1] / "broken.py"
SQLITE = BROKEN.with_name("sqlite_worlds.py")
# Fault -> the check that owns it; the first of each check is in the default tests.
FAULTS = {
    **dict.fromkeys(("UnplainParams", "OneIdForAll", "ChangingTasks"), "tasks"),
    "SharedProblems": "splits",
    **dict.fromkeys(("RaisesLate", "LosesItsTurn", "CannotBegin"), "turns"),
    **dict.fromkeys(("CrashesOnOddText", "KnowsDigitsOnly"), "odd actions"),
    **dict.fromkeys(("Narrow", "Huge"), "spaces"),
    **dict.fromkeys(("LeftOver", "GlobalChance"), "determinism"),
    **dict.fromkeys(("AnchorOfChance", "OneAnchor"), "anchors"),
    **dict.fromkeys(("ForgetsInSnapshot", "TextSnapshot"), "snapshot"),
    **dict.fromkeys(("NaNPart", "PartsMissing", "UnlistedPart", "EarlyOutcome"), "rewards"),
    **dict.fromkeys(("Endless", "BothEnds"), "ends"),
    **dict.fromkeys(("NoTurnKey", "OverfullProgress"), "info"),
    "FixedSeed": "gymnasium",
    **dict.fromkeys(("LostExpert", "BadExpert"), "expert"),
    "Leaks": "leak",
    **dict.fromkeys(("ClosesOnce", "CannotClose"), "close"),
}
FIRST = {check: fault for fault, check in reversed(FAULTS.items())}.values()
# One fault hides the other, or brings it about.
OVERRIDE_TASKS = {"UnplainParams", "OneIdForAll", "ChangingTasks", "SharedProblems"}
HIDDEN = [
    *(({"determinism"}, {check}) for check in ("anchors", "snapshot", "other process")),
    *(({"spaces"}, {"gymnasium"}), ({"ChangingTasks"}, {"determinism"})),
    *(({"CannotBegin"}, {"gymnasium", "snapshot"}), ({"RaisesLate", "LosesItsTurn"}, {"BadExpert"})),
    ({"KnowsDigitsOnly"}, {"LostExpert"}),
]
QUICK = [name for name in NAMES if name not in ("other process", "speed", "processes")]


def is_compatible(one: str, two: str) -> bool:
    first, second = {one, FAULTS[one]}, {two, FAULTS[two]}
    hidden = any((first & a and second & b) or (second & a and first & b) for a, b in HIDDEN)
    return FAULTS[one] != FAULTS[two] and not hidden and not {one, two} <= OVERRIDE_TASKS


PAIRS = [pair for pair in combinations(FAULTS, 2) if is_compatible(*pair)]
DEFAULT = [pair for pair in PAIRS if set(pair) <= set(FIRST)]


def report(name: str, chosen: list[str] = QUICK) -> Report:
    return Report(name, tuple(Finding(**values) for values in examined(name, {}, 2, 0, 60.0, chosen)))


def failures(name: str, chosen: list[str] = QUICK) -> list[str]:
    return sorted(finding.check for finding in report(name, chosen).failed)


def test_the_table_has_enough_pairs():
    assert len(DEFAULT) >= 60 and len(PAIRS) >= 300


@pytest.mark.parametrize("fault", FAULTS)
def test_one_fault_is_one_failure(fault):
    assert failures(f"{BROKEN}:{fault}") == [FAULTS[fault]]


@pytest.mark.parametrize(
    ("one", "two"), [pair if pair in DEFAULT else pytest.param(*pair, marks=pytest.mark.slow) for pair in PAIRS]
)
def test_two_faults_are_two_failures(one, two):
    assert failures(f"{BROKEN}:{one}_{two}") == sorted((FAULTS[one], FAULTS[two]))


@pytest.mark.parametrize(
    ("faults", "failed"),
    [
        ("RandomTasks_BadExpert", ["expert", "tasks"]),
        ("RandomTasks_FixedSeed", ["gymnasium", "tasks"]),
        ("RandomTasks_OneAnchor", ["tasks"]),  # which hides the other
        ("LosesItsParts_UnlistedPart", ["info"]),  # the same
        ("LosesItsParts_FixedSeed", ["gymnasium", "info"]),
        ("ForgetsFiles_FixedSeed", ["gymnasium"]),
        ("ForgetsFiles_LostExpert", ["expert"]),
    ],
)
def test_a_consequence_is_no_fault_of_the_check_that_meets_it(faults, failed):
    seen = report(f"{BROKEN}:{faults}")
    assert sorted(finding.check for finding in seen.failed) == failed
    assert (seen["close"].status == "warning") == faults.startswith("ForgetsFiles")
    assert seen["random"].status != "skipped" or seen["random"].same_as == "expert"


@pytest.mark.parametrize(
    ("fault", "check", "fix"),
    [
        ("TextSaved", "snapshot", "return bytes"),
        ("NumberAsAnswer", "turns", "as text"),
        ("TextMeasured", "turns", "return a number"),
        ("OneMeasure", "turns", "return a dict"),
        ("TextAsPart", "turns", "give a number"),
    ],
)
def test_a_wrong_type_is_named_with_its_fix_and_its_line(fault, check, fix):
    [finding] = report(f"{BROKEN}:{fault}").failed
    assert finding.check == check and fix in finding.detail and "broken.py, line" in finding.detail


@pytest.mark.parametrize("two", ["Leaks", "LostExpert", "NaNPart", "RaisesLate"])
def test_a_fault_of_another_process_stands_beside_a_fault_of_this_one(two):
    chosen = [*QUICK, "other process"]
    assert failures(f"{BROKEN}:HashOrder_{two}", chosen) == sorted(("other process", FAULTS[two]))


@pytest.mark.parametrize(("cls", "failed"), [("Counter", []), ("LostCounter", ["expert"])])
def test_a_world_that_is_bound_to_its_thread_is_used_in_one(cls, failed):
    assert failures(f"{SQLITE}:{cls}", [*NAMES]) == failed


def test_what_follows_from_a_failure_is_listed_with_it_and_is_none():
    found = report(f"{BROKEN}:LeftOver")
    others = {finding.check for finding in found.findings if finding.same_as == "determinism"}
    assert others == {"anchors", "snapshot"} and [row.status for row in found.repeats] == ["skipped"]
    assert "'determinism'" in str(found) and not found["snapshot"].figures
