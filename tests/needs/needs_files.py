"""Files that are not part of the project: golden numbers in $MANYTURN_GOLDEN, data in $MANYTURN_DATA.

Without the variables the folders are ``shared/golden`` and ``shared/data`` next to the checkout. Any subset of the
files is enough: tests of a missing file are skipped.
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
GOLDEN = Path(os.environ.get("MANYTURN_GOLDEN") or _SHARED / "golden")
DATA = Path(os.environ.get("MANYTURN_DATA") or _SHARED / "data")
NO_GOLDEN = "golden files are missing: set MANYTURN_GOLDEN to a folder that has them"
NO_DATA = "data files are missing: set MANYTURN_DATA to a folder that has them"


@cache
def golden_file(name: str) -> dict[str, Any]:
    """The content of one golden file; skips where it is missing."""
    file = GOLDEN / f"{name}.json"
    if not file.is_file():
        absent("GOLDEN", NO_GOLDEN)
    return json.loads(file.read_text(encoding="utf-8"))


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
