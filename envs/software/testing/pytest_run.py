"""A run of chosen tests in a sandbox, and how much of what it reports can be believed."""

import json
import math
import secrets
import shlex
import signal
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from manyturn.containers.sandbox import WORKSPACE, Sandbox

_PROGRAM = "".join(Path(__file__).with_name(name).read_text() for name in ("answer_recorder.py", "grading_plugin.py"))
_ENVIRON = {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
OPTIONS = (
    "-q",
    "--tb=short",
    "--color=no",
    "--continue-on-collection-errors",
    "-p",
    "no:cacheprovider",
    "-o",
    "addopts=",
)
"""Of pytest, whatever the program's own settings say."""
_OPTIONS = (*OPTIONS, f"--rootdir={WORKSPACE}")

_ASKED = ("--runxfail", "--assert=plain", "--tb=no")

_ROOM = "ulimit -S -v 1000000\n"  # kB; then too large a number is an error, and not the end

_PATIENCE = 2.5  # seconds by the clock for one of the processor's
OUTCOMES = PASSED, FAILED, SKIPPED, XFAILED = "passed", "failed", "skipped", "xfailed"


class PytestRun(NamedTuple):
    """Result of a run of tests.

    Attributes:
        outcomes: id -> passed, failed, skipped or xfailed; a test that never ended is missing.
        texts: id -> why it failed, as pytest tells it; of files that could not be collected too.
        answers: id -> pairs of a question's number and its answer, where the files were ``questions``.
        status: pytest's exit status; -1 if the run was cut off before its end.
        timed_out: the run was stopped at its deadline.
        forged: why the report cannot be pytest's own, in no words of the report; empty if nothing speaks against it.
    """

    outcomes: Mapping[str, str]
    texts: Mapping[str, str]
    answers: Mapping[str, list[Any]]
    status: int
    timed_out: bool = False
    forged: str = ""


def run_tests(
    sandbox: Sandbox, chosen: Collection[str], seconds: float, functions: Collection[str] = (), each: float = 0.0
) -> PytestRun:
    """Run tests by pytest's ids, in the files as they lie in the workspace.

    Whole files are collected and the chosen tests kept, so that a test that is not there is missing and no more.

    Args:
        seconds: of the processor's time for all of them; by the clock more, so that a busy machine fails no test.
        functions: ids without parameters, of which every test is chosen; they run after the others, and not for
            longer than those take or so.
        each: of the processor's time for one test that answers questions; 0 where tests are as they were.
    """
    nonce = secrets.token_hex(16)  # a secret, not chance: no result depends on it
    files = [*_files(chosen), *_files(functions)]
    order = json.dumps(
        {
            **{"nonce": nonce, "chosen": sorted(chosen), "functions": sorted(functions), "seconds": each},
            "arguments": [*_OPTIONS, *(_ASKED if each else ()), *files],
        }
    )
    limits = f"ulimit -S -t {math.ceil(seconds)}\n" + (_ROOM if functions else "")
    script = limits + _script(order)
    ran = sandbox.run(script, seconds=_PATIENCE * seconds, environ=_ENVIRON, report=True)
    checked = read_report(ran.report, nonce, frozenset(chosen), ran.status, frozenset(functions))
    # A run that was killed breaks off in the middle of a line; nothing of that is a forgery.
    late = ran.timed_out or ran.status == 128 + signal.SIGXCPU
    return checked._replace(timed_out=True, status=-1, forged="") if late else checked


def _files(tests: Collection[str]) -> list[str]:
    return sorted({test.partition("::")[0] for test in tests})


def _script(order: str) -> str:
    """A shell script that runs the program with an order on its standard input.

    Python must not look into the workspace for its own modules, which ``-c`` would put first on its path.
    """
    program = f"import sys; del sys.path[0]\n{_PROGRAM}"
    return f"exec python3 -s -B -c {shlex.quote(program)} <<'END-OF-ORDER'\n{order}\nEND-OF-ORDER\n"


def read_report(
    report: bytes, nonce: str, chosen: Collection[str], status: int, functions: Collection[str] = ()
) -> PytestRun:
    """Read a report strictly: every line is of the reporter, and the exit status of the process agrees with it."""
    records, forged = _records(report, nonce)
    exit_code = records.pop()["exit"] if records and "exit" in records[-1] else None
    outcomes, texts, answers = dict[str, str](), dict[str, str](), dict[str, list[Any]]()
    for record in records:
        if "exit" in record:
            forged = forged or "the report goes on after its end"
        elif "file" in record:
            texts[record["file"]] = record["text"]
        elif record["id"] in outcomes:
            forged = forged or "a test is reported twice"
        elif record["id"] not in chosen and record["id"].partition("[")[0] not in functions:
            forged = forged or "a test is reported that was not asked for"
        else:
            outcomes[record["id"]], answers[record["id"]] = record["outcome"], record["answers"]
            texts |= {record["id"]: record["text"]} if record["text"] else {}
    if exit_code is None:
        return PytestRun(outcomes, texts, answers, -1, forged=forged)
    if exit_code != status:
        forged = forged or "pytest says that it ended otherwise than its process did"
    elif exit_code == 0 and (texts or FAILED in outcomes.values()):
        forged = forged or "pytest ended with 0 although something failed"
    return PytestRun(outcomes, texts, answers, exit_code, forged=forged)


def _records(report: bytes, nonce: str) -> tuple[list[dict[str, Any]], str]:
    """The records of a report up to the first that is not sound, and what is wrong with that."""
    records: list[dict[str, Any]] = []
    *lines, rest = report.split(b"\n")
    for line in lines:
        given, _, text = line.partition(b" ")
        try:
            record = json.loads(text)
        except (ValueError, RecursionError):
            record = {}
        if given != nonce.encode() or not _sound(record):
            return records, "a line in the report that is not the reporter's"
        records.append(record)
    return records, "the report breaks off in a line" if rest else ""


def _sound(record: Any) -> bool:
    match record:
        case {"exit": int()}:
            return len(record) == 1
        case {"id": str(), "outcome": str(outcome), "text": str(), "answers": list(answers)}:
            return len(record) == 4 and outcome in OUTCOMES and all(map(_is_answer, answers))
        case {"file": str(), "outcome": str(outcome), "text": str()}:
            return len(record) == 3 and outcome in OUTCOMES
    return False


def _is_answer(answer: Any) -> bool:
    return isinstance(answer, list) and len(answer) == 2 and isinstance(answer[0], int)
