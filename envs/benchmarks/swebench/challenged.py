"""Our own check beside the official grader: a patch that it calls right has to compute what the row's patch computes.

The official grader reads the log that the graded process prints, and that process can print a better one. So the tests
that decide are asked as questions, in copies with other literals too; see ``manyturn.envs.software.challenge``. That
takes tests that pytest runs by their ids, and a row with its own patch. Other rows cannot be challenged.
"""

from collections.abc import Mapping

from manyturn.containers.inside.archive import pack
from manyturn.containers.sandbox import Sandbox, SandboxRefused, Snapshot
from manyturn.envs.benchmarks.swebench.patches import SETUP_SECONDS, EvaluationBroke, unpack, with_input
from manyturn.envs.benchmarks.swebench.prepare import HIDDEN
from manyturn.envs.benchmarks.swebench.rows import R2EGYM, Row
from manyturn.envs.software.challenge import Challenge, Met, Tests

SECONDS = 600.0
"""Of the processor's time, for a run of the tests."""
_LARGEST = 4_000_000  # bytes of a file of tests
_EMPTY = Snapshot(*pack([]))
_APPLY = "git apply --whitespace=nowarn"


def can_be_challenged(row: Row) -> bool:
    """Whether a row has what a challenge takes."""
    named = [test.partition("::") for test in row.fail_to_pass]
    by_pytest = bool(named) and all(path.endswith(".py") and name for path, _, name in named)
    return by_pytest and not row.script and row.family != R2EGYM and bool(row.gold or row.fault)


def met(sandbox: Sandbox, row: Row, patch: str, seed: int) -> Met | None:
    """How a patch that is said to be right meets a challenge; None where the reference answers no test that decides.

    Args:
        sandbox: of the grader's image, started; whatever is in its workspace is lost.
        seed: of the challenge.
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

    def lay(sandbox: Sandbox, patch: str, files: Mapping[str, bytes]) -> None:
        _lay(sandbox, row, patch, files)

    reference = row.gold or f"{_REVERSED}{row.fault}"
    found = Challenge(row.instance, tests, reference, "", lay, seed).met(sandbox, patch, SECONDS, {*fails, *keeps})
    return found if found.answered.intersection(fails) or found.timed_out else None


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
