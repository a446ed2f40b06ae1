"""Runs a row's tests on its repository with a patch, as SWE-bench's harness does, and grades what they say."""

import shlex

from manyturn.containers.inside.archive import pack
from manyturn.containers.sandbox import Ran, Sandbox, Snapshot
from manyturn.envs.benchmarks.swebench.image_preparation import HIDDEN
from manyturn.envs.benchmarks.swebench.log_grader import END, EXIT, INVALID, START, Grade, Resolved, as_expected, grade
from manyturn.envs.benchmarks.swebench.log_parsers import parser_of
from manyturn.envs.benchmarks.swebench.patch_extraction import (
    SETUP_SECONDS,
    EvaluationBroke,
    patched_files,
    unpack,
    with_input,
)
from manyturn.envs.benchmarks.swebench.rows import R2EGYM, Row

LOG_BYTES = 16_000_000
SECONDS = 1800.0
"""Deadline of the tests, as in the harness."""
_ENVIRON = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONIOENCODING": "utf8", "LANG": "C.UTF-8"}
_NO_TESTS = (".json", ".png", "csv", ".txt", ".md", ".jpg", ".jpeg", ".pkl", ".yml", ".yaml", ".toml")
_COMMANDS = {
    "django/django": "./tests/runtests.py --verbosity 2 --settings=test_sqlite --parallel 1",
    "sphinx-doc/sphinx": "tox --current-env -epy39 -v -- -rA",
    "sympy/sympy": "PYTHONWARNINGS='ignore::UserWarning,ignore::SyntaxWarning' bin/test -C --verbose",
}
_COMMAND = "pytest -rA --color=no -p no:cacheprovider"


def evaluate(sandbox: Sandbox, row: Row, patch: str, seconds: float = SECONDS) -> Grade:
    """Run a row's tests on its repository with a patch, and grade the log.

    Args:
        sandbox: of the grader's image, started, its workspace empty, keeping ``LOG_BYTES`` of output.

    Raises:
        EvaluationBroke: the tests did not begin, and would not without the patch.
    """
    unpack(sandbox)
    if (
        patch
        and sandbox.run(with_input(patch.encode(), "git apply --whitespace=nowarn -"), seconds=SETUP_SECONDS).status
    ):
        return INVALID
    script = script_of_tests(row)
    ran = _run(sandbox, script, seconds)
    if START not in ran.output and not ran.timed_out:
        if patch and _begins_without_patch(sandbox, script, seconds):
            return INVALID
        raise EvaluationBroke(f"{row.instance}: its tests do not begin: {ran.output[-300:].strip()}")
    if ran.timed_out:
        return INVALID
    if row.expected is not None:
        good = as_expected(ran.output, row.expected)
        resolved = Resolved.FULL if good else Resolved.NO
        return Grade(resolved, valid=True, mended=float(good), unbroken=float(good), failing=())
    parser = parser_of(row.repository, row.log_parser)
    return grade(ran.output, parser, row.fail_to_pass, row.pass_to_pass)


def _run(sandbox: Sandbox, script: str, seconds: float) -> Ran:
    file = with_input(script.encode(), "cat > /tmp/eval.sh")
    return sandbox.run(f"{file}\nbash /tmp/eval.sh 2>&1", seconds=seconds, environ=_ENVIRON)


def _begins_without_patch(sandbox: Sandbox, script: str, seconds: float) -> bool:
    """True if the tests begin without the patch, so that it kept them from that: earlier commands may run its code."""
    lines = script.splitlines(keepends=True)
    start = next((number for number, line in enumerate(lines, 1) if START in line), 0)
    sandbox.restore(Snapshot(*pack([])))
    unpack(sandbox)
    return START in _run(sandbox, "".join(lines[:start]), seconds).output


def script_of_tests(row: Row) -> str:
    """The script that runs the tests between markers, and prints the exit code after the last of them."""
    if row.script:
        lines = row.script.strip().split("\n")
        end = next((place for place, line in enumerate(lines) if END in line), None)
        if end is not None:
            lines[end : end + 1] = ["manyturn_code=$?", lines[end], f'echo "{EXIT}: $manyturn_code"']
        return "\n".join(lines) + "\n"
    lines = ["cd /testbed", f"[ ! -d {HIDDEN} ] || cp -r {HIDDEN}/. ."]
    if row.test_patch:
        lines.append(with_input(row.test_patch.encode(), "git apply --whitespace=nowarn -"))
    lines += [f"echo '{START}'", _test_command(row), "code=$?", f"echo '{END}'", f'echo "{EXIT}: $code"']
    return "\n".join(lines) + "\n"


def _test_command(row: Row) -> str:
    if row.family == R2EGYM:
        return "bash run_tests.sh"
    files = [file for file in patched_files(row.test_patch) if not file.endswith(_NO_TESTS)]
    if not row.test_patch:
        files = sorted({test.partition("::")[0] for test in (*row.fail_to_pass, *row.pass_to_pass)})
    if row.repository == "django/django":
        files = [file.removesuffix(".py").removeprefix("tests/").replace("/", ".") for file in files]
    return f"{row.command or _COMMANDS.get(row.repository, _COMMAND)} {shlex.join(files)}"
