"""QuixBugs (Python): 40 classic algorithms with a fault in one line, and tests by pytest.

From Lin et al. 2017 (github.com/jkoppel/QuixBugs, MIT). The specification stands below each program's code, where the
agent can read it; tests and the fixed programs are not shown. Cases that a test reads from a file are written into it.
"""

import ast
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from manyturn.envs.contract.python_parser import parse
from manyturn.envs.software.source.edits import Edit, Places, applied
from manyturn.envs.software.source.problem import Problem
from manyturn.envs.software.tasks.importers.checkout_reader import Checkout, DataError, warn_of_other
from manyturn.envs.software.tasks.importers.known_outcomes import QUIXBUGS, divided
from manyturn.envs.software.tasks.importers.testnames import names_of_tests

SOURCE = "github.com/jkoppel/QuixBugs"
COUNT = 40
_FAULTY, _MENDED, _TESTS, _CASES = "python_programs", "correct_python_programs", "python_testcases", "json_testcases"
_BESIDE = ("conftest.py", f"{_TESTS}/load_testdata.py", f"{_TESTS}/node.py")


def problems_of(folder: Path) -> Sequence[Problem]:
    """One problem a program that has a test. Raises DataError; warns if there are not as many as there should be."""
    checkout = Checkout(folder, SOURCE, (_FAULTY, _MENDED, _TESTS, _CASES))
    beside = {path: checkout.read(path) for path in _BESIDE}
    programs = [name[len("test_") : -len(".py")] for name in checkout.names(_TESTS, "test_*.py")]
    problems = [_problem(checkout, program, beside) for program in programs]
    if not problems:
        raise DataError(f"{checkout.root / _TESTS} has no tests: give a checkout of {SOURCE}")
    if len(problems) != COUNT:
        warn_of_other(checkout.root, f"{len(problems)} programs with tests, not {COUNT}")
    return problems


def _problem(checkout: Checkout, program: str, beside: dict[str, bytes]) -> Problem:
    path, test, cases = f"{_FAULTY}/{program}.py", f"{_TESTS}/test_{program}.py", f"{_CASES}/{program}.json"
    tests = {**beside, test: checkout.read(test)}
    parameters = _parameters(checkout, cases)
    ids = names_of_tests(checkout.text(test), checkout.root / test, parameters)
    if parameters is not None:
        tests[test] = _written_out(tests[test], parameters)
    ids = [f"{test}::{name}" for name in ids]
    if (sorts := divided(QUIXBUGS, program, ids)) is None:
        warn_of_other(checkout.root / test, "its tests are not those that were measured")
    fail_to_pass, pass_to_pass = sorts or (ids, ())
    return Problem(
        id=f"quixbugs/{program}",
        statement=f"{path} has a fault in one line. What `{program}` is meant to do stands below its code.",
        files={path: checkout.read(path)},
        tests=tests,
        fail_to_pass=tuple(fail_to_pass),
        pass_to_pass=pass_to_pass,
        fix={path: checkout.read(f"{_MENDED}/{program}.py")},
        counts=path.__eq__,
    )


def _parameters(checkout: Checkout, path: str) -> list[Any] | None:
    """Pairs of input and expected output, one a line; None if the program's tests are written out. Raises DataError."""
    if not checkout.has(path):
        return None
    try:
        pairs = [json.loads(line) for line in checkout.text(path).splitlines() if line.strip()]
    except (ValueError, RecursionError):
        raise DataError(f"{checkout.root / path} is not JSON in lines: give a checkout of {SOURCE}") from None
    if not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
        raise DataError(f"{checkout.root / path} does not hold pairs: give a checkout of {SOURCE}")
    return pairs


def _written_out(test: bytes, parameters: list[Any]) -> bytes:
    """A file of tests with its cases in place of the call that loads them: what grades it reads what is in the file."""
    tree, places = parse(test), Places(test)
    loaders = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "load_testdata"
        for alias in node.names
    }
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) in loaders]
    return applied(test, [Edit("", "", places.span(call), (repr(parameters),)) for call in calls])
