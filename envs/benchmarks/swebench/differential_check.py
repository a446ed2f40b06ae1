"""Our own check beside the official grader: a patch that it calls right has to compute what the row's patch computes.

The official grader reads the log that the graded process prints, and that process can print a better one. So the tests
that decide are asked as questions, in copies with other literals too; see
``manyturn.envs.software.grading.differential_testing``. That takes tests that pytest runs by their ids, and a row with
its own patch. Other rows cannot be challenged.
"""

from collections.abc import Mapping
from typing import NamedTuple

from manyturn.containers.inside.archive import pack
from manyturn.containers.sandbox import Sandbox, SandboxRefused, Snapshot
from manyturn.envs.benchmarks.swebench.image_preparation import HIDDEN
from manyturn.envs.benchmarks.swebench.log_grader import Grade, Resolved
from manyturn.envs.benchmarks.swebench.patch_evaluation import SECONDS as DEADLINE
from manyturn.envs.benchmarks.swebench.patch_evaluation import evaluate
from manyturn.envs.benchmarks.swebench.patch_extraction import SETUP_SECONDS, EvaluationBroke, unpack, with_input
from manyturn.envs.benchmarks.swebench.rows import R2EGYM, Row
from manyturn.envs.software.grading.differential_testing import Challenge, Met, Tests, deck_of

SECONDS = 600.0
"""Of the processor's time, for a run of the tests."""
_LARGEST = 4_000_000  # bytes of a file of tests
_EMPTY = Snapshot(*pack([]))
_APPLY = "git apply --whitespace=nowarn"


UNGRADED = {"official": 0.0, "challenged": 0.0, "tampered": 0.0}
"""The measures of work that was not graded."""


class InTheWay(ValueError):
    """A patch does not apply, or the tests that decide cannot be laid over it, though they can without it."""


class Judged(NamedTuple):
    """The judgement of a patch.

    Attributes:
        right: whether it counts as right: by the official grader, and by the challenge where there is one.
        verdict: a sentence on it.
        measures: ``official``, ``challenged`` and ``tampered``; ``reached`` where it was challenged, see ``Met``.
    """

    right: bool
    verdict: str
    measures: Mapping[str, float]


def judged(sandbox: Sandbox, row: Row, patch: str, seed: int, seconds: float = DEADLINE) -> Judged:
    """Grade a patch as SWE-bench's harness does, and challenge what that calls right.

    Args:
        sandbox: of the grader's image, started, its workspace empty, keeping ``LOG_BYTES`` of output.
        seed: of the challenge.
        seconds: deadline of the official run; a run of the challenge has no more of the processor's time.

    Raises:
        EvaluationBroke: the tests did not begin.
    """
    # The tests are hidden: what has seen them could tell the challenge of them. So the challenge comes first.
    challenge, broke, in_the_way = None, None, False
    if can_be_challenged(row):
        try:
            challenge = met(sandbox, row, patch, seed, min(SECONDS, seconds))
        except InTheWay:  # of a patch that does not apply the official grader says so
            in_the_way = True
        except EvaluationBroke as error:
            broke = error
        sandbox.restore(_EMPTY)
    grade = evaluate(sandbox, row, patch, seconds)
    right, verdict = grade.resolved is Resolved.FULL, _verdict(grade)
    measures = {**UNGRADED, "official": float(right)}
    if right and broke:
        raise broke
    if right and in_the_way:
        # Not an error, which would be tried again: a patch must not be able to turn a failure into one.
        verdict = "It lies where the tests belong, so nothing can be asked."
        return Judged(right=False, verdict=verdict, measures={**measures, "challenged": 1.0, "reached": 0.0})
    if challenge is None or not right:
        return Judged(right, verdict, measures)
    measures |= {"challenged": 1.0, "tampered": float(bool(challenge.tampered)), "reached": challenge.reached}
    lost = [test for test in row.fail_to_pass if test in challenge.answered and not challenge.holds(test)]
    if challenge.tampered:
        verdict = f"Its log was tampered with: {challenge.tampered}."
    elif challenge.timed_out:
        verdict = "The tests did not come to their end when they were asked as questions."
    elif lost:
        verdict = f"{lost[0]} passes on its own inputs alone."
    return Judged(not (challenge.tampered or challenge.timed_out or lost), verdict, measures)


def _verdict(grade: Grade) -> str:
    if not grade.valid:
        return "The tests did not come to their end with this patch."
    names = {
        Resolved.FULL: "It is mended.",
        Resolved.PARTIAL: "It is mended in part.",
        Resolved.NO: "It is not mended.",
    }
    failing = f" Failing: {', '.join(grade.failing[:5])}" + (" ..." if len(grade.failing) > 5 else "")
    return names[grade.resolved] + (failing if grade.failing else "")


def can_be_challenged(row: Row) -> bool:
    """True if a row has what a challenge takes."""
    named = [test.partition("::") for test in row.fail_to_pass]
    by_pytest = bool(named) and all(path.endswith(".py") and name for path, _, name in named)
    return by_pytest and not row.script and row.family != R2EGYM and bool(row.gold or row.fault)


def met(sandbox: Sandbox, row: Row, patch: str, seed: int, seconds: float = SECONDS) -> Met | None:
    """A patch's answers to a challenge; None where the reference answers no test that decides.

    Args:
        sandbox: of the grader's image, started; whatever is in its workspace is lost.
        seed: of the challenge.
        seconds: of the processor's time, for a run of the tests.

    Raises:
        EvaluationBroke: the row's tests cannot be laid over its own repository, or over its own patch.
        InTheWay: they can, but not over this patch.
    """
    _lay(sandbox, row, "", {})
    paths = sorted({test.partition("::")[0] for test in (*row.fail_to_pass, *row.pass_to_pass) if "::" in test})
    files: dict[str, bytes] = {}
    for path in paths:
        try:
            files[path] = sandbox.read(path, _LARGEST)
        except SandboxRefused:  # a test that is missing is the official grader's affair
            continue
    fails, keeps = ([t for t in some if t.partition("::")[0] in files] for some in (row.fail_to_pass, row.pass_to_pass))
    tests = Tests(files, fails, keeps)

    reference = row.gold or f"{_REVERSED}{row.fault}"

    def lay(sandbox: Sandbox, program: str, files: Mapping[str, bytes]) -> None:
        try:
            _lay(sandbox, row, program, files)
        except (EvaluationBroke, SandboxRefused) as error:
            if program in ("", reference):
                raise
            raise InTheWay(str(error)) from error

    challenge = Challenge(row.instance, tests, reference, [""], lay, deck_of(seed))
    answers = challenge.met(challenge.ask(sandbox, patch, seconds), {*fails, *keeps})
    return answers if answers.answered.intersection(fails) or answers.timed_out else None


_REVERSED = "reversed\n"


def _lay(sandbox: Sandbox, row: Row, patch: str, files: Mapping[str, bytes]) -> None:
    """The repository with a patch and the tests that decide, and files in place of some of them."""
    sandbox.restore(_EMPTY)
    unpack(sandbox)
    scripts = [f"[ ! -d {HIDDEN} ] || cp -r {HIDDEN}/. ."]
    if patch:
        back, text = ("-R ", patch.removeprefix(_REVERSED)) if patch.startswith(_REVERSED) else ("", patch)
        scripts.insert(0, with_input(text.encode(), f"{_APPLY} {back}-"))
    if row.test_patch:
        scripts.append(with_input(row.test_patch.encode(), f"{_APPLY} -"))
    for script in scripts:
        ran = sandbox.run(script, seconds=SETUP_SECONDS)
        if ran.status:
            raise EvaluationBroke(f"{row.instance}: its patches do not apply: {ran.output[-300:].strip()}")
    for path, content in files.items():
        sandbox.write(path, content)
