"""Exercism's Python track: practice exercises with instructions, a stub to fill in, tests and an example solution.

github.com/exercism/python (MIT). The agent gets the stub and is told the instructions; the tests are not shown. Two
of the 140 exercises, ``ledger`` and ``markdown``, start from code that passes, and are left out.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from manyturn.envs.software.source.problem import Problem
from manyturn.envs.software.tasks.importers.checkout_reader import Checkout, DataError, inside, warn_of_other
from manyturn.envs.software.tasks.importers.known_outcomes import EXERCISM, divided
from manyturn.envs.software.tasks.importers.testnames import names_of_tests

SOURCE = "github.com/exercism/python"
COUNT = 138
_PRACTICE = "exercises/practice"
_TOLD = ("introduction.md", "introduction.append.md", "instructions.md", "instructions.append.md")


def problems_of(folder: Path) -> Sequence[Problem]:
    """One problem an exercise. Raises DataError; warns if there are not as many as there should be."""
    checkout = Checkout(folder, SOURCE, (_PRACTICE,))
    made = [_problem(checkout, name) for name in checkout.names(_PRACTICE, "[!.]*")]
    problems = [problem for problem in made if problem is not None]
    if not problems:
        raise DataError(f"{checkout.root / _PRACTICE} has no exercises: give a checkout of {SOURCE}")
    if len(problems) != COUNT:
        warn_of_other(checkout.root, f"{len(problems)} exercises, not {COUNT}")
    return problems


def _problem(checkout: Checkout, name: str) -> Problem | None:
    """None if nothing is to be fixed: two exercises ask for a better form of what works."""
    folder = f"{_PRACTICE}/{name}"
    files = _listed(checkout.table(f"{folder}/.meta/config.json"), checkout.root / folder)
    (solution, *more), tests, examples = files["solution"], files["test"], files["example"]
    if more or len(examples) != 1:
        raise DataError(f"{checkout.root / folder} has more than one solution file: give a checkout of {SOURCE}")
    ids = [
        f"{test}::{test_name}"
        for test in tests
        if test.endswith("_test.py")
        for test_name in names_of_tests(checkout.text(f"{folder}/{test}"), checkout.root / folder / test)
    ]
    if (sorts := divided(EXERCISM, name, ids)) is None:
        warn_of_other(checkout.root / folder, "its tests are not those that were measured")
    fail_to_pass, pass_to_pass = sorts or (ids, ())
    if not fail_to_pass:
        return None
    own_files = {solution, *tests}
    beside = [path for path in checkout.names(folder, "[!.]*.py") if path not in own_files]  # what tests import
    return Problem(
        id=f"exercism/{name}",
        statement=_statement(checkout, folder, solution),
        files={solution: checkout.read(f"{folder}/{solution}")},
        tests={path: checkout.read(f"{folder}/{path}") for path in (*tests, *beside)},
        fail_to_pass=tuple(fail_to_pass),
        pass_to_pass=pass_to_pass,
        fix={solution: checkout.read(f"{folder}/{examples[0]}")},
        counts=solution.__eq__,
    )


def _listed(config: Mapping[str, Any], where: Path) -> dict[str, list[str]]:
    """Kind of file -> paths, as the exercise's configuration lists them. Raises DataError."""
    files = config.get("files")
    kinds = ("solution", "test", "example")
    if not isinstance(files, dict) or not all(isinstance(files.get(kind), list) and files[kind] for kind in kinds):
        raise DataError(f"{where}/.meta/config.json does not list {', '.join(kinds)}: give a checkout of {SOURCE}")
    return {kind: [inside(path, where) for path in files[kind]] for kind in kinds}


def _statement(checkout: Checkout, folder: str, solution: str) -> str:
    documents = [f"{folder}/.docs/{name}" for name in _TOLD]
    pages = [checkout.text(path).strip() for path in documents if checkout.has(path)]
    return "\n\n".join([*pages, f"Fill in {solution}."])
