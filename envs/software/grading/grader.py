"""Grades what an agent did to a problem's files, in a workspace that the agent has never been in.

Resolved means, as in SWE-bench (Jimenez et al. 2024, arXiv 2310.06770): every FAIL_TO_PASS test passes, or fails as its
file expects, and no PASS_TO_PASS test fails or is missing; a skipped test counts as failed among the former and as kept
among the latter.

What is graded is the problem's own files with the agent's changes to source files; see ``carried``. The agent's sources
run in the same process as the tests, so nothing that this process says of outcomes is a verdict. It is evidence, which
has to be free of contradictions: lines need a nonce, the exit status must agree, no test may be reported twice or
unasked. What it says to pass is believed if the program also meets a ``Challenge``: in another run the tests are
questions without expectations, some with other literals, and every answer must be the reference's. The answers are
compared here. So nothing depends on whether the sources can tell one run from another. Where the tests are hidden from
the agent, its program has answered before it meets them.

A test that was said to pass and whose own questions have no, or other, answers is a contradiction: tampering. What
fails in copies alone passes on the tests' own inputs and on no others: the tests fail.

What is not promised stands in docs/grading-limits.md.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import NamedTuple

from manyturn.containers.sandbox import Sandbox, SandboxRefused
from manyturn.envs.software.grading.differential_testing import Challenge, Met, Tests, deck_of
from manyturn.envs.software.source.file_tree import Changes, Tree, snapshot_of, with_changes
from manyturn.envs.software.source.problem import Problem
from manyturn.envs.software.testing.expected_failures import expected_to_fail
from manyturn.envs.software.testing.pytest_run import FAILED, PASSED, XFAILED, PytestRun, run_tests
from manyturn.envs.software.testing.time_budget import TimeBudget, timed

RESOLVED, UNRESOLVED, TIMEOUT, TAMPERED = "resolved", "tests fail", "timeout", "tampered"

RUNNER = frozenset({"pytest", "_pytest", "pluggy", "py", "iniconfig", "packaging", "attr", "attrs", "conftest"})
STEERING = frozenset(
    {"conftest.py", "pytest.ini", ".pytest.ini", "pytest.toml", "setup.cfg", "tox.ini", "pyproject.toml"}
    | {"sitecustomize.py", "usercustomize.py", "__main__.py"}
)
_KINDS = frozenset({".pth", ".pyc", ".pyo", ".so", ".egg-link"})
MADE_FOLDERS = (".git", "__pycache__", ".egg-info", ".dist-info")


class Grade(NamedTuple):
    """Results of a problem's tests.

    Attributes:
        cause: resolved, tests fail, timeout or tampered.
        detail: what speaks for tampering, or why no test was run.
        fixed: FAIL_TO_PASS tests that pass.
        broken: PASS_TO_PASS tests that do not.
        texts: id -> why a test failed, or file -> why its tests could not be collected.
        reached: share of FAIL_TO_PASS tests of which a copy with other literals reaches the fault: at 0 the grade rests
            on the tests' own inputs alone. None where nothing was challenged.
        official: whether all tests pass as they are, by the word of the process that ran the program: what other
            projects report, and what a program can forge.
    """

    cause: str
    detail: str
    fixed: tuple[str, ...]
    broken: tuple[str, ...]
    texts: Mapping[str, str]
    reached: float | None = None
    official: bool = False


def carried(problem: Problem, changes: Changes) -> dict[str, bytes | None]:
    """The changes that are graded: of files that count, and that no test, Python or pytest takes orders from."""
    return {path: content for path, content in changes.items() if carries(problem, path)}


def carries(problem: Problem, path: str) -> bool:
    """True if a change of the file at a path is graded."""
    if path in problem.tests or not problem.counts(path):
        return False
    place = PurePosixPath(path)
    if place.name in STEERING or place.suffix in _KINDS:
        return False
    if any(part.endswith(MADE_FOLDERS) for part in place.parts):
        return False
    return path in problem.files or not (_shadows(problem.files, place) or _clashes(problem.files, place))


def _shadows(files: Tree, new: PurePosixPath) -> bool:
    """True if a new file could be imported in place of a module of Python or of the test runner."""
    for depth, part in enumerate(new.parts):
        folder = "/".join((*new.parts[:depth], "__init__.py"))
        if folder not in files and part.partition(".")[0] in sys.stdlib_module_names | RUNNER:
            return True
    return False


def _clashes(files: Tree, new: PurePosixPath) -> bool:
    """True if a new file is below a file of the problem, or named as one of its folders."""
    above = {str(folder) for folder in new.parents}
    return not above.isdisjoint(files) or any(path.startswith(f"{new}/") for path in files)


@dataclass(frozen=True, kw_only=True)
class AgentTurn:
    """A turn of an agent in which a grade is asked for.

    Args:
        budget: by the clock, for all that runs the changed program.
        rehearsal: the agent's work goes on afterwards, so it is asked nothing that counts in the end.
        evidence: ``run_as_they_are`` with the arguments of ``grade``, or its earlier result.
    """

    budget: TimeBudget | None = None
    rehearsal: bool = False
    evidence: Callable[[], PytestRun] | None = None


def grade(
    sandbox: Sandbox,
    problem: Problem,
    changes: Changes,
    seconds: float,
    seed: int,
    requested_in: AgentTurn | None = None,
) -> Grade:
    """Run a problem's tests on its own files with changes that are ``carried``, and challenge what passes.

    Args:
        sandbox: whatever is in it is lost.
        seconds: of the processor's time for one run of the tests; those of a challenge take longer.
        seed: of the challenge.
        requested_in: the agent's turn in which the grade is asked for; None outside of an episode.
    """
    turn = requested_in or AgentTurn()
    budget, evidence = turn.budget, turn.evidence
    challenge = challenge_of(problem, problem.pass_to_pass, deck_of(seed, turn.rehearsal))
    # What has seen a hidden test could tell the challenge of it, so then the challenge comes first. Tests that the
    # agent can read are no secret, and most attempts end with them.
    answered = challenge.ask(sandbox, changes, seconds, budget) if _hidden(problem) else None
    try:
        run = evidence() if evidence else run_as_they_are(sandbox, problem, changes, seconds, budget)
    except SandboxRefused as error:  # what was changed is too large, by itself or with the tests
        return Grade(UNRESOLVED, str(error), (), problem.pass_to_pass, {})
    claimed = _claimed(problem, run)
    if claimed.cause not in (RESOLVED, UNRESOLVED) or not claimed.fixed:
        return claimed
    if answered is None:
        answered = challenge.ask(sandbox, changes, seconds, budget)
    claims = {test for test in (*claimed.fixed, *problem.pass_to_pass) if test not in claimed.broken}
    return _challenged(claimed, problem, challenge.met(answered, claims))._replace(official=claimed.official)


def challenge_of(problem: Problem, ids: Sequence[str], number: int) -> Challenge[Changes]:
    """The challenge of a problem, which asks these of the tests that pass before the fix."""
    tests, nothing = Tests(problem.tests, problem.fail_to_pass, ids), dict[str, bytes | None]()
    faulty = [dict(one) for one in problem.alone] or [nothing]
    return Challenge[Changes](problem.id, tests, dict(problem.fix), faulty, _laying(problem), number)


def run_as_they_are(
    sandbox: Sandbox, problem: Problem, changes: Changes, seconds: float, budget: TimeBudget | None = None
) -> PytestRun:
    """The evidence: a run of the problem's tests as they are. Raises SandboxRefused."""
    _laying(problem)(sandbox, changes, {})
    return run_tests(timed(sandbox, budget), (*problem.fail_to_pass, *problem.pass_to_pass), seconds)


def _hidden(problem: Problem) -> bool:
    """True if an agent that has the problem's files lacks some of the tests."""
    return any(problem.files.get(path) != content for path, content in problem.tests.items())


def _laying(problem: Problem) -> Callable[[Sandbox, Changes, Tree], None]:
    def lay(sandbox: Sandbox, changes: Changes, files: Tree) -> None:
        merged = with_changes({**problem.files, **problem.tests}, changes)
        sandbox.restore(snapshot_of({**merged, **files}))

    return lay


def _claimed(problem: Problem, run: PytestRun) -> Grade:
    """Report of a run of the tests."""
    passing = {test for test, outcome in run.outcomes.items() if outcome != FAILED}
    expected = expected_to_fail(problem.tests, (*problem.fail_to_pass, *problem.pass_to_pass))
    passed = {
        test for test in passing if run.outcomes[test] == PASSED or (run.outcomes[test] == XFAILED and test in expected)
    }
    fixed = tuple(test for test in problem.fail_to_pass if test in passed)
    broken = tuple(test for test in problem.pass_to_pass if test not in passing)
    if run.forged:
        return Grade(TAMPERED, run.forged, (), problem.pass_to_pass, {})
    if run.timed_out:
        return Grade(TIMEOUT, "", (), broken, run.texts)
    resolved = len(fixed) == len(problem.fail_to_pass) and not broken and run.status == 0
    cause = RESOLVED if resolved else UNRESOLVED
    return Grade(cause, "", fixed, broken, run.texts, official=resolved)


def _challenged(claimed: Grade, problem: Problem, met: Met) -> Grade:
    """Claims that hold after the program's answers."""
    if met.tampered:
        return Grade(TAMPERED, met.tampered, (), problem.pass_to_pass, {}, met.reached)
    if met.timed_out:
        return Grade(TIMEOUT, "", (), claimed.broken, claimed.texts)
    fixed = tuple(test for test in claimed.fixed if met.holds(test))
    broken = tuple(t for t in problem.pass_to_pass if t in claimed.broken or t in met.wrong)
    if fixed == claimed.fixed and broken == claimed.broken:
        return claimed._replace(reached=met.reached)
    lost = next(test for test in (*claimed.fixed, *broken) if test not in fixed and test not in claimed.broken)
    detail = f"{lost} passes on its own inputs alone"
    return Grade(UNRESOLVED, detail, fixed, broken, claimed.texts, met.reached)
