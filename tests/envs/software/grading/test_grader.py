"""A grade says what SWE-bench's rules say of pytest's own results, and believes nothing else."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small import CORE, FAIL, MENDED, PASS, small

from manyturn.containers.docker.docker_sandbox import DockerSandbox
from manyturn.envs.software.grading.grader import RESOLVED, TIMEOUT, UNRESOLVED, Grade, carried, grade
from manyturn.envs.software.testing.expected_failures import expected_to_fail
from manyturn.envs.software.testing.pytest_run import PytestRun, read_report

NONCE = "0123456789abcdef" * 2


def graded(sandbox: DockerSandbox, core: str, seconds: float = 20, **other: object) -> Grade:
    return grade(sandbox, small(**other), {"calc/core.py": core.encode()}, seconds, seed=0)


@pytest.mark.deep
def test_the_known_mend_is_resolved_and_the_fault_is_not(sandbox: DockerSandbox) -> None:
    assert graded(sandbox, MENDED) == Grade(RESOLVED, "", FAIL, (), {}, 1.0, official=True)
    faulty = graded(sandbox, CORE)
    assert (faulty.cause, faulty.fixed, faulty.broken) == (UNRESOLVED, (), ())
    assert "assert -1 == 3" in faulty.texts[FAIL[0]]


def test_a_mend_that_breaks_another_test_is_not_resolved(sandbox: DockerSandbox) -> None:
    found = graded(sandbox, MENDED.replace("a * 2", "a + 1"))
    assert (found.cause, found.fixed, found.broken) == (UNRESOLVED, FAIL, PASS[1:3])


def test_a_source_that_cannot_be_imported_breaks_all(sandbox: DockerSandbox) -> None:
    found = graded(sandbox, "def add(:\n")
    assert (found.cause, found.fixed, found.broken) == (UNRESOLVED, (), PASS)
    assert "SyntaxError" in found.texts["tests/test_core.py"]


@pytest.mark.deep
@pytest.mark.parametrize("body", ["while True: pass", "import time; time.sleep(60)"])
def test_a_test_that_does_not_end_is_stopped_and_fails(sandbox: DockerSandbox, body: str) -> None:
    found = graded(sandbox, CORE.replace("return a - b", body), 1)
    assert (found.cause, found.fixed) == (TIMEOUT, ())


RULES = """import pytest
from calc.core import add

def test_passes(): pass

@pytest.mark.skipif(add(1, 1) == 2, reason="no")
def test_is_skipped(): assert add(1, 1) == 2

@pytest.mark.xfail
def test_fails_as_expected(): assert add(1, 1) == 3

@pytest.mark.xfail
def test_passes_unexpectedly(): assert add(1, 1) == 2

@pytest.fixture
def broken(): raise RuntimeError

@pytest.fixture
def untidy():
    yield
    raise RuntimeError

def test_cannot_begin(broken): pass

def test_cannot_end(untidy): pass
"""


@pytest.mark.deep
@pytest.mark.parametrize(
    ("name", "as_fail", "as_pass"),
    [
        ("test_passes", True, True),
        ("test_is_skipped", False, True),
        ("test_fails_as_expected", True, True),
        ("test_passes_unexpectedly", True, True),
        ("test_cannot_begin", False, False),
        ("test_cannot_end", False, False),
        ("test_is_missing", False, False),
    ],
)
def test_a_test_counts_as_in_swe_bench(sandbox: DockerSandbox, name: str, as_fail: bool, as_pass: bool) -> None:
    files = {**small().files, "tests/test_rules.py": RULES.encode()}
    tests = {**small().tests, "tests/test_rules.py": RULES.encode()}
    test = f"tests/test_rules.py::{name}"

    def resolved(fails: tuple[str, ...], passes: tuple[str, ...]) -> bool:
        found = graded(sandbox, MENDED, files=files, tests=tests, fail_to_pass=fails, pass_to_pass=passes)
        return found.cause == RESOLVED

    assert resolved((test,), ()) == as_fail
    assert resolved(FAIL[:1], (test,)) == as_pass


@pytest.mark.parametrize(
    ("path", "counts"),
    [
        ("calc/core.py", True),
        ("calc/new.py", True),
        ("calc/random.py", True),  # in a package a name cannot stand in for Python's own
        ("other/__init__.py", True),
        ("tests/test_core.py", False),
        ("pytest.ini", False),
        ("conftest.py", False),
        ("calc/conftest.py", False),
        ("sitecustomize.py", False),
        ("calc/usercustomize.py", False),
        ("setup.cfg", False),
        ("sub/pyproject.toml", False),
        ("x.pth", False),
        ("calc/core.pyc", False),
        ("calc/core.so", False),
        ("calc/__pycache__/core.py", False),
        (".git/config", False),
        ("evil.egg-info/entry_points.txt", False),
        ("random.py", False),
        ("pytest.py", False),
        ("_pytest/runner.py", False),
        ("src/unittest/__init__.py", False),
        ("calc/core.py/x.py", False),
        ("calc", False),
    ],
)
def test_only_changes_of_sources_are_carried_over(path: str, counts: bool) -> None:
    problem = small(files={**small().files, "setup.cfg": b"", "calc/conftest.py": b""})
    assert bool(carried(problem, {path: b"x"})) == counts


def test_a_deleted_source_is_carried_over() -> None:
    assert carried(small(), {"calc/core.py": None, "pytest.ini": None}) == {"calc/core.py": None}


def test_marks_are_read_from_the_file_alone() -> None:
    text = b"""
import pytest
@pytest.mark.xfail(reason="x")
class TestA:
    def test_a(self): pass
@pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.xfail), 2])
def test_b(x): pass
def test_c(): pytest.xfail("no mark")
"""
    ids = ["t.py::TestA::test_a", "t.py::test_b[1]", "t.py::test_c", "u.py::test_b[1]", "v.py::test_c", "w.py::test_c"]
    tests = {"t.py": text, "u.py": b"", "v.py": b"pytestmark = [pytest.mark.xfail]", "w.py": b"xfail ="}
    assert expected_to_fail(tests, ids) == {ids[0], ids[1], ids[4]}


# ---- reports ------------------------------------------------------------------------------------------------


def line(record: object, nonce: str = NONCE) -> bytes:
    return f"{nonce} {json.dumps(record)}\n".encode()


def passed(name: str, outcome: str = "passed", text: str = "", **other: object) -> bytes:
    return line({"id": name, "outcome": outcome, "text": text, "answers": [], **other})


def read(report: bytes, status: int = 0) -> PytestRun:
    return read_report(report, NONCE, {"a", "b"}, status)


END = line({"exit": 0})


def test_a_true_report_is_believed() -> None:
    failed = passed("b", "failed", "why")
    assert read(passed("a") + failed + line({"exit": 1}), 1) == PytestRun(
        {"a": "passed", "b": "failed"}, {"b": "why"}, {"a": [], "b": []}, 1
    )


@pytest.mark.parametrize(
    ("report", "status"),
    [
        (passed("a") + END, 1),
        (passed("a") + passed("a") + END, 0),
        (passed("c") + END, 0),
        (passed("a") + END + passed("b"), 0),
        (passed("a") + END + END, 0),
        (passed("a", "failed") + END, 0),
        (line({"file": "a", "outcome": "failed", "text": "e"}) + END, 0),
        (passed("a").replace(NONCE.encode(), b"0" * 32) + END, 0),
        (b"\n" + passed("a") + END, 0),
        (passed("a") + END + b"x", 0),
        (passed("a", "fine") + END, 0),
        (passed("a", more=1) + END, 0),
        (passed("a", answers=[[1]]) + END, 0),
        (line({"id": ["a"], "outcome": "passed", "text": "", "answers": []}) + END, 0),
        (line({"exit": True, "x": 0}), 0),
        (line([]) + END, 0),
        (NONCE.encode() + b" " + b"[" * 100_000 + b"\n" + END, 0),
        (NONCE.encode() + b" " + b"9" * 100_000 + b"\n" + END, 0),
    ],
)
def test_a_report_that_contradicts_itself_is_forged(report: bytes, status: int) -> None:
    assert read(report, status).forged


def test_a_report_without_an_end_says_what_it_says() -> None:
    assert read(passed("a"), 0) == PytestRun({"a": "passed"}, {}, {"a": []}, -1)
    assert read(b"", 0) == PytestRun({}, {}, {}, -1)


@given(st.binary(max_size=200) | st.text(max_size=100).map(str.encode))
def test_junk_is_never_a_pass(junk: bytes) -> None:
    assert not read(junk).outcomes
    assert read(passed("a") + junk).status == -1


@given(st.lists(st.sampled_from([passed("a"), passed("b"), END, line({"exit": 1}), b"junk\n"]), max_size=5))
def test_only_one_shape_of_report_counts_as_a_success(lines: list[bytes]) -> None:
    found = read(b"".join(lines))
    if found.status == 0 and not found.forged:
        assert lines[-1] == END and sorted(lines[:-1]) == sorted(set(lines[:-1])) and END not in lines[:-1]
