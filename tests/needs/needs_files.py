"""Golden numbers, and data that are not part of the project: in $MANYTURN_GOLDEN and $MANYTURN_DATA.

Without the variables the numbers of algorithms are those of ``tests/golden``; what belongs to environments is looked
for in ``shared/golden`` and ``shared/data`` next to the checkout. Any subset of the files is enough: tests of a missing
file are skipped.
"""

import json
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from needs import absent

_SHARED = Path(__file__).resolve().parents[3] / "shared"
COMMITTED = Path(__file__).resolve().parents[1] / "golden"
_NAMED = os.environ.get("MANYTURN_GOLDEN")
GOLDEN = (Path(_NAMED),) if _NAMED else (COMMITTED, _SHARED / "golden")
DATA = Path(os.environ.get("MANYTURN_DATA") or _SHARED / "data")
NO_GOLDEN = "golden files are missing: set MANYTURN_GOLDEN to a folder that has them"
NO_DATA = "data files are missing: set MANYTURN_DATA to a folder that has them"


@cache
def golden_file(name: str) -> dict[str, Any]:
    """The content of one golden file; skips where it is missing."""
    file = golden_path(name)
    if file is None:
        absent("GOLDEN", NO_GOLDEN)
    return json.loads(file.read_text(encoding="utf-8"))


def golden_path(name: str) -> Path | None:
    """Where a golden file lies."""
    return next((file for folder in GOLDEN if (file := folder / f"{name}.json").is_file()), None)


def data(folder: str, *files: str) -> Path:
    """A folder of the data; skips where it, or one of these files in it, is missing."""
    place = DATA / folder
    if not place.is_dir() or not all((place / file).is_file() for file in files):
        absent("DATA", NO_DATA)
    return place


@pytest.fixture(scope="session")
def golden() -> Callable[[str], dict[str, Any]]:
    """Reads a golden file."""
    return golden_file
