"""Words and letters that mean two things: docs/glossary.md against the code."""

import ast
import pkgutil
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
LINKS = {ROOT / "manyturn" / folder for folder in ("envs", "agents", "trainers", "containers")}
# Folders of envs/ that are no family: what all of them share.
SHARED = ("contract", "hosting", "conformance", "tools", "users", "web")
_AXES = re.compile(r"(?<=[a-z0-9])_([A-Z]{1,3})$")


def trees(*folders: str) -> Iterator[tuple[Path, ast.Module]]:
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if not LINKS & set(path.parents):
                yield path.relative_to(ROOT), ast.parse(path.read_text(encoding="utf-8"))


def letters() -> list[str]:
    return re.findall(r"^\| `([A-Z])` \|", GLOSSARY, re.MULTILINE)


def names(tree: ast.Module) -> set[str]:
    """All identifiers that a file binds or uses.

    >>> sorted(names(ast.parse("def f(a_K, *, b=c.d_ET): g(e_T=a_K)")))
    ['a_K', 'b', 'c', 'd_ET', 'e_T', 'f', 'g']
    """
    found = set()
    for node in ast.walk(tree):
        for field in ("id", "arg", "attr", "name"):
            if isinstance(value := getattr(node, field, None), str):
                found.add(value)
    return found


def test_a_letter_stands_for_one_axis_that_the_glossary_names():
    legend = letters()
    assert len(legend) == len(set(legend)) and set("NGEKTVD") <= set(legend)
    used, unknown = set(), set()
    for path, tree in trees("trainers", "agents", "manyturn"):
        for name in names(tree):
            if found := _AXES.search(name):
                used |= set(found[1])
                unknown |= {(str(path), name) for letter in found[1] if letter not in legend}
    assert not unknown
    assert not set(legend) - used - set("NGEKTVD"), "letters that no name ends in"


def test_no_class_name_occurs_twice_outside_environment_families():
    places = defaultdict(list)
    for path, tree in trees("envs", "agents", "trainers", "containers", "manyturn"):
        if path.parts[0] == "envs" and len(path.parts) > 2 and path.parts[1] not in SHARED:
            continue
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(str(path))
    assert not {name: found for name, found in places.items() if len(found) > 1}


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`(manyturn\.[\w.]+)`", GLOSSARY))))
def test_what_the_glossary_names_is_in_the_code(name):
    pkgutil.resolve_name(name)


def test_a_word_is_explained_once():
    words = re.findall(r"^\| (?!word)([a-z][\w -]*?) \| .* \| .*\|$", GLOSSARY, re.MULTILINE)
    assert len(words) > 40 and len(words) == len(set(words))
