"""Examples in docstrings that no longer hold."""

import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOPS = {"manyturn": "manyturn", **{top: f"manyturn.{top}" for top in ("trainers", "agents", "envs", "containers")}}


def modules() -> list[str]:
    """Names of all modules with an example; the face's links to the other folders are left out."""
    return [
        ".".join([name, *path.relative_to(ROOT / top).with_suffix("").parts])
        for top, name in TOPS.items()
        for path in sorted((ROOT / top).rglob("*.py"))
        if not (top == "manyturn" and path.relative_to(ROOT / top).parts[0] in TOPS)
        and re.search(r"^\s*>>> ", path.read_text(encoding="utf-8"), re.MULTILINE)
    ]


@pytest.mark.parametrize("name", modules())
def test_examples_hold(name):
    module = pytest.importorskip(name, exc_type=ImportError)
    result = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert result.attempted and not result.failed
