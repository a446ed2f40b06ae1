"""Whose work is followed, and under which licence: THIRD_PARTY_NOTICES.md against docstrings, files and the wheel."""

import ast
import io
import re
import subprocess
import tokenize
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
NOTICES = (ROOT / "THIRD_PARTY_NOTICES.md").read_text(encoding="utf-8")
FOLDERS = ("envs", "agents", "trainers", "containers", "manyturn")
LICENCES = ("MIT", "Apache-2.0", "BSD", "CC BY-SA 4.0", "GPL")
PHRASES = {
    "MIT": ("Copyright", "Permission is hereby granted, free of charge", "this permission notice shall be included"),
    "Unicode-3.0": ("Copyright", "this copyright and permission notice appear"),
    "Apache-2.0": ("`LICENSE`",),
}
# An owner and a name with a slash between them, which is no path, no unit and no placeholder in capitals.
_REPOSITORY = re.compile(r"(?:github\.com/|(?<![\w./`<\"'-]))([A-Za-z][\w-]{2,}/[A-Za-z][\w.-]{2,}\w)(?![\w/*`])")
_OURS = {"manyturn", "runs"}


class Entry(NamedTuple):
    """A section of the notices: the address of a source, its licence, the places that follow it, all of its text."""

    source: str
    licence: str
    here: tuple[str, ...]
    text: str


def entries() -> dict[str, Entry]:
    found = {}
    for name, text in re.findall(r"^### (.+?)\n(.*?)(?=^##|\Z)", NOTICES, re.MULTILINE | re.DOTALL):
        facts = dict(re.findall(r"^- (\w+): (.+)$", text, re.MULTILINE))
        found[name] = Entry(facts["Source"], facts["Licence"], tuple(re.findall(r"`(.+?)`", facts["Here"])), text)
    return found


@cache
def prose(path: Path) -> str:
    """A file's docstrings, without their examples, and its comments."""
    source = path.read_text(encoding="utf-8")
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    found = [ast.get_docstring(node) or "" for node in ast.walk(ast.parse(source)) if isinstance(node, kinds)]
    found = [re.sub(r"^ *>>> .*\n(?: *\S.*\n?)*", "", text, flags=re.MULTILINE) for text in found]
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return "\n".join([*found, *(token.string for token in tokens if token.type == tokenize.COMMENT)])


def repositories(text: str) -> set[str]:
    """What a text names as ``owner/name``.

    >>> sorted(repositories("numbers of verl (some-lab/verl, ``a/b.py``); see envs/task.py, OWNER/NAME, 5 turns/s"))
    ['some-lab/verl']
    """
    names = {name.rstrip(".") for name in _REPOSITORY.findall(text)}
    return {
        name
        for name in names
        if not (ROOT / name).exists() and name.split("/")[0] not in _OURS and not name.split("/")[0].isupper()
    }


def product() -> list[Path]:
    lines = subprocess.run(["git", "ls-files", *FOLDERS], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    return [ROOT / line for line in lines.splitlines() if line.endswith(".py")]


def test_a_repository_that_a_docstring_names_has_its_entry():
    known = {name.lower() for name in re.findall(r"github\.com/([\w-]+/[\w.-]+?)[,\s]", NOTICES)}
    named = {(str(path.relative_to(ROOT)), name) for path in product() for name in repositories(prose(path))}
    assert len(named) > 20, "the search for names finds nothing any more"
    assert not {(path, name) for path, name in named if name.lower() not in known}


def test_a_licence_that_a_docstring_names_is_that_of_an_entry_for_the_file():
    found = 0
    for path in product():
        place = path.relative_to(ROOT).as_posix()
        here = " ".join(entry.licence for entry in entries().values() if place.startswith(entry.here))
        for licence in LICENCES:
            if re.search(rf"\b{re.escape(licence)}\b", prose(path)):
                found += 1
                assert licence in here, f"{place} names {licence}, but no entry of {licence} is for it"
    assert found > 10, "the search for licences finds nothing any more"


@pytest.mark.parametrize("name", entries())
def test_an_entry_has_its_files_and_the_terms_of_its_licence(name):
    entry = entries()[name]
    for place in entry.here:
        assert (ROOT / place).is_dir() if place.endswith("/") else (ROOT / place).is_file(), f"{name}: no {place}"
    licence = re.split(r"[;,]", entry.licence)[0]
    missing = [phrase for phrase in PHRASES[licence] if phrase not in " ".join(entry.text.split())]
    assert not missing, f"{name} is under {licence}, but lacks {missing}"
