"""HumanEvalFix (Python): 164 small functions, each with a fault put in by hand and the tests that show it.

From OctoPack (Muennighoff et al. 2023, arXiv 2308.07124; github.com/bigcode-project/octopack, MIT). As in the paper's
variant with docstrings, the docstring is told to the agent and the tests are not.
"""

import ast
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from manyturn.envs.contract.python_parser import parse
from manyturn.envs.software.source.problem import Problem
from manyturn.envs.software.tasks.importers.checkout_reader import (
    DataError,
    json_object,
    plain_name,
    read_small,
    sha256_of,
    texts_of,
    warn_of_other,
)

SOURCE = "HumanEvalFix's Python (humanevalpack.jsonl of github.com/bigcode-project/octopack)"
SHA256 = "b1376d72be4bd016a62ad043d9de3846edb8d63edf1222da802a31330c14c3a7"
COUNT = 164
_LARGEST = 50_000_000
_FIELDS = ("task_id", "declaration", "buggy_solution", "canonical_solution", "test", "entry_point", "docstring")
_SOLUTION, _TESTS = "solution.py", "test_solution.py"


def problems_of(file: Path) -> Sequence[Problem]:
    """One problem a row. Raises DataError; warns if the file is not the one that was verified."""
    content = read_small(file, SOURCE, _LARGEST)
    lines = [line for line in content.splitlines() if line.strip()]
    problems = [_problem(line, f"{file}, line {number}") for number, line in enumerate(lines, 1)]
    if len({problem.id for problem in problems}) < len(problems):
        raise DataError(f"{file} names a task twice: fetch {SOURCE}")
    if not problems:
        raise DataError(f"{file} is empty: fetch {SOURCE}")
    if sha256_of(content) != SHA256:
        warn_of_other(file, f"{len(problems)} rows that differ from the {COUNT} of the known file")
    return problems


def _problem(line: bytes, where: str) -> Problem:
    row = json_object(line, where, SOURCE)
    name, declaration, buggy, canonical, test, entry, docstring = texts_of(row, _FIELDS, where)
    language, slash, number = name.partition("/")
    if language != "Python" or not slash or not number.isdecimal() or not number.isascii():
        raise DataError(f"{where}: task {name!r:.40} is not of the Python set: give {SOURCE}")
    if not entry.isidentifier():
        raise DataError(f"{where}: {entry!r:.40} is no function's name: give {SOURCE}")
    tests = _tests(test, entry, where)
    return Problem(
        id=f"humanevalfix/{plain_name(number, where)}",
        statement=_statement(row, entry, docstring),
        files={_SOLUTION: (declaration + buggy).encode()},
        tests={_TESTS: tests.encode()},
        fail_to_pass=(f"{_TESTS}::test_{entry}",),
        pass_to_pass=(),
        fix={_SOLUTION: (declaration + canonical).encode()},
        counts=_SOLUTION.__eq__,
    )


def _statement(row: Mapping[str, Any], entry: str, docstring: str) -> str:
    signature = row.get("signature")
    called = signature if isinstance(signature, str) else entry
    return f"{_SOLUTION} has a fault: `{called}` does not do what it is meant to do, which is:\n\n{docstring.strip()}"


def _tests(text: str, entry: str, where: str) -> str:
    """The row's ``check`` and, in place of its call when the file is imported, a test that pytest finds."""
    try:
        body = parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise DataError(f"{where}: its test is no Python: give {SOURCE}") from None
    last = body[-1] if body else None
    if not isinstance(last, ast.Expr) or ast.unparse(last) != f"check({entry})":
        raise DataError(f"{where}: its test does not end with check({entry}): give {SOURCE}")
    above = "\n".join(text.split("\n")[: last.lineno - 1]).strip()
    return f"from {_SOLUTION[:-3]} import *\n\n\n{above}\n\n\ndef test_{entry}():\n    check({entry})\n"
