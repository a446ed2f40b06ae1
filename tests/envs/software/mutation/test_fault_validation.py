import pytest
from local_sandbox import LocalSandbox
from tiny_library import CODE, tiny  # noqa: F401

from manyturn.envs.software.mutation.candidates import Fault
from manyturn.envs.software.mutation.fault_validation import VALID, Baseline, FaultValidator, Verdict
from manyturn.envs.software.source.edits import Edit

ONCE = "return 3 if __import__('os').path.exists('x') else open('x', 'w').write('')"  # is wrong the first time
TESTS = ("tests/test_tiny.py",)
HIGH, LOW = "tests/test_tiny.py::test_high", "tests/test_tiny.py::test_low"


_measured: list[Baseline] = []  # once for all tests


@pytest.fixture
def validator(tiny):  # noqa: F811
    with FaultValidator(tiny, LocalSandbox, *_measured) as found:
        _measured[:] = [found.baseline]
        yield found


def fault(*changes: tuple[bytes, str]) -> Fault:
    edits = []
    for old, new in changes:
        start = CODE.index(old)
        edits.append(("tiny.py", Edit("made", f"at {start}", (start, start + len(old)), (new,))))
    return Fault("tiny", tuple(edits), TESTS)


def test_a_fault_that_some_tests_notice_is_a_task(validator):
    verdict = validator.judge(fault((b"return high", "return low")))
    assert verdict._replace(seconds=0.0, pass_to_pass=()) == Verdict(
        VALID, (HIGH,), (), ((HIGH, "assert 0 == 4\n +  where 0 = clipped(9, 0, 4)"),)
    )
    assert len(verdict.pass_to_pass) == 12 and HIGH not in verdict.pass_to_pass


@pytest.mark.deep
@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (b"# never below", "# at all", "survived"),
        (b"number > found", "number < found", "broke too much"),
        pytest.param(b'"""Numbers."""', "import nothing_of_that_name", "nothing ran", marks=pytest.mark.slow),
        pytest.param(b"return found", "__import__('os')._exit(0)", "nothing ran", marks=pytest.mark.slow),
        (b"found = number", "while True: pass", "timed out"),
        pytest.param(b"return self.value / count", ONCE, "unsteady", marks=pytest.mark.slow),
    ],
)
def test_a_fault_that_makes_no_task_is_refused_for_its_reason(validator, monkeypatch, old, new, reason):
    monkeypatch.setattr("manyturn.envs.software.mutation.fault_validation._PATIENCE", (2.0, 0.0))
    assert validator.judge(fault((old, new))).reason == reason


def test_a_fault_that_another_one_hides_makes_no_task_with_it(validator):
    parts = [frozenset({LOW}), frozenset({HIGH})]
    both = fault((b"return low", "return 1"), (b"high if number > high else number", "max(number, 0)"))
    hidden = fault((b"number < low", "False"), (b"high if number > high else number", "min(number, high)"))
    assert validator.judge(both, parts).reason == VALID
    assert {test for test, _ in validator.judge(both, parts).symptoms} == {LOW, HIGH}
    assert validator.judge(hidden, parts).reason == "one fault hides another"


def test_what_a_baseline_knows_is_not_measured_again(tiny):  # noqa: F811
    known = Baseline(frozenset({HIGH}), {})
    assert FaultValidator(tiny, lambda: pytest.fail("a container was started"), known).baseline is known


def test_combined_faults_are_borne_up_to_a_quarter_of_the_tests(validator):
    tests = sorted(validator.baseline.steady)
    assert len(tests) == 13
    assert validator.bears(fault(), frozenset(tests[:3])) and not validator.bears(fault(), frozenset(tests[:4]))
