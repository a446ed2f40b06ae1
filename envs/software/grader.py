"""Grades what an agent did to a problem's files, in a workspace that the agent has never been in.

Resolved means, as in SWE-bench (Jimenez et al. 2024, arXiv 2310.06770): every FAIL_TO_PASS test passes, or fails as its
file expects, and no PASS_TO_PASS test fails or is missing; a skipped test counts as failed among the former and as kept
among the latter.

What is graded is the problem's own files with the agent's changes to source files; see ``carried``. The agent's sources
run in the same process as the tests, so what that process reports is doubted: lines need a nonce, the exit status must
agree, no test may be reported twice or unasked, and a *twin* run, in which each test is made to fail after its own
body has passed, must report no test as passed.

Residual risk: sources written against this very grader can find the reporter in memory, learn its nonce and tell the
twin from the true run, and so forge a report. And any sources can satisfy assertions without doing the work, for
instance with a result that equals everything. Neither leaves a trace here.
"""

import sys
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import NamedTuple

from manyturn.containers.sandbox import Sandbox, SandboxRefused
from manyturn.envs.software.checked_run import FAILED, PASSED, XFAILED, run_tests
from manyturn.envs.software.marks import expected_to_fail
from manyturn.envs.software.problem import Problem
from manyturn.envs.software.tree import Changes, Tree, snapshot_of, with_changes

RESOLVED, UNRESOLVED, TIMEOUT, TAMPERED = "resolved", "tests fail", "timeout", "tampered"

_RUNNER = frozenset({"pytest", "_pytest", "pluggy", "py", "iniconfig", "packaging", "attr", "attrs", "conftest"})
_STEERING = frozenset(
    {"conftest.py", "pytest.ini", ".pytest.ini", "pytest.toml", "setup.cfg", "tox.ini", "pyproject.toml"}
    | {"sitecustomize.py", "usercustomize.py", "__main__.py"}
)
_KINDS = frozenset({".pth", ".pyc", ".pyo", ".so", ".egg-link"})
_FOLDERS = (".git", "__pycache__", ".egg-info", ".dist-info")


class Grade(NamedTuple):
    """What became of a problem's tests.

    Attributes:
        cause: resolved, tests fail, timeout or tampered.
        detail: what speaks for tampering, or why no test was run.
        fixed: FAIL_TO_PASS tests that pass.
        broken: PASS_TO_PASS tests that do not.
        texts: id -> why a test failed, or file -> why its tests could not be collected.
    """

    cause: str
    detail: str
    fixed: tuple[str, ...]
    broken: tuple[str, ...]
    texts: Mapping[str, str]


def carried(problem: Problem, changes: Changes) -> dict[str, bytes | None]:
    """The changes that are graded: of files that count, and that no test, Python or pytest takes orders from."""
    return {path: content for path, content in changes.items() if _carries(problem, path)}


def _carries(problem: Problem, path: str) -> bool:
    if path in problem.tests or not problem.counts(path):
        return False
    place = PurePosixPath(path)
    if place.name in _STEERING or place.suffix in _KINDS:
        return False
    if any(part.endswith(_FOLDERS) for part in place.parts):
        return False
    return path in problem.files or not (_shadows(problem.files, place) or _clashes(problem.files, place))


def _shadows(files: Tree, new: PurePosixPath) -> bool:
    """Whether a new file could be imported in place of a module of Python or of the test runner."""
    for depth, part in enumerate(new.parts):
        folder = "/".join((*new.parts[:depth], "__init__.py"))
        if folder not in files and part.partition(".")[0] in sys.stdlib_module_names | _RUNNER:
            return True
    return False


def _clashes(files: Tree, new: PurePosixPath) -> bool:
    """Whether a new file is below a file of the problem, or named as one of its folders."""
    above = {str(folder) for folder in new.parents}
    return not above.isdisjoint(files) or any(path.startswith(f"{new}/") for path in files)


def grade(sandbox: Sandbox, problem: Problem, changes: Changes, seconds: float) -> Grade:
    """Run a problem's tests on its own files with changes that are ``carried``.

    Args:
        sandbox: whatever is in it is lost.
        seconds: of the processor's time for one run of the tests; there is a second one if some pass that failed.
    """
    workspace = snapshot_of(with_changes({**problem.files, **problem.tests}, changes))
    chosen = (*problem.fail_to_pass, *problem.pass_to_pass)
    try:
        sandbox.restore(workspace)
    except SandboxRefused as error:  # what was changed is too large, by itself or with the tests
        return Grade(UNRESOLVED, str(error), (), problem.pass_to_pass, {})
    true = run_tests(sandbox, chosen, seconds)
    kept = {test for test, outcome in true.found.items() if outcome != FAILED}
    expected = expected_to_fail(problem.tests, chosen)
    passed = {test for test in kept if true.found[test] == PASSED or (true.found[test] == XFAILED and test in expected)}
    fixed = tuple(test for test in problem.fail_to_pass if test in passed)
    broken = tuple(test for test in problem.pass_to_pass if test not in kept)
    if true.forged:
        return Grade(TAMPERED, true.forged, (), problem.pass_to_pass, {})
    if true.timed_out:
        return Grade(TIMEOUT, "", fixed, broken, true.texts)
    if fixed:
        sandbox.restore(workspace)
        twin = run_tests(sandbox, chosen, seconds, twin=True)
        lies = sorted(test for test, outcome in twin.found.items() if outcome in (PASSED, XFAILED))
        lies += [test for test in fixed if twin.found.get(test) != FAILED and not twin.timed_out]
        if twin.forged or lies:
            detail = twin.forged or f"{lies[0]} passes although it was made to fail"
            return Grade(TAMPERED, detail, (), problem.pass_to_pass, {})
        if twin.timed_out:
            return Grade(TIMEOUT, "", (), broken, true.texts)
    resolved = len(fixed) == len(problem.fail_to_pass) and not broken and true.status == 0
    return Grade(RESOLVED if resolved else UNRESOLVED, "", fixed, broken, true.texts)
