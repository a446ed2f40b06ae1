"""Suites: panels across families, frozen under a name, so that policies are compared on the same tasks for ever.

``v1.json`` holds the frozen tasks, ``v1.toml`` says which were chosen; ``v2`` adds families to it. ``results`` has what
policies reached.
"""

from pathlib import Path

from manyturn.envs.contract.options.options import unknown
from manyturn.suites.suite import Suite, SuiteError

FOLDER = Path(__file__).parent


def names() -> list[str]:
    """Names of the suites that come along."""
    return sorted(file.stem for file in FOLDER.glob("*.json"))


def results_folder(file: Path) -> Path:
    """Folder of a suite's results: next to its file, in ``results``, under the file's name."""
    return file.parent / "results" / file.stem


def find_suite(word: str) -> tuple[Suite, Path]:
    """A suite and its file: a name from ``names``, or a file that ``manyturn suite freeze`` wrote."""
    file = FOLDER / f"{word}.json"
    if word not in names():
        if not word.endswith(".json"):
            raise SuiteError(f"{unknown('suite', word, names())}; a file ends in .json")
        file = Path(word)
    return Suite.load(file), file
