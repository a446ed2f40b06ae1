"""Names and first sentences that hide what a thing is."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
TOPS = ("manyturn", "trainers", "agents", "envs", "containers", "benchmarks", "examples")
LINKS = ("envs", "agents", "trainers", "containers")
RELATIVE = re.compile(r"(What|Who|Whose|Whom|Where|Whether|Why|When|How|Those|Which|One that|One who)\b")
VAGUE = {"found", "told", "said", "asked", "kept", "known", "wanted"}
MODULES = {
    *VAGUE,
    "given",
    "made",
    "alone",
    "longer",
    "oddities",
    "moment",
    "visible",
    "sides",
    "utils",
    "helpers",
}


def sources() -> Iterator[Path]:
    """Python files of the project, without its tests and without what the face links to."""
    for top in TOPS:
        for path in sorted((ROOT / top).rglob("*.py")):
            parts = path.relative_to(ROOT).parts
            if not (parts[0] == "manyturn" and parts[1] in LINKS):
                yield path


def docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and docstring of each module, class and function; empty for those without."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield getattr(node, "lineno", 1), ast.get_docstring(node) or ""


def test_a_docstring_names_the_thing_first():
    """A first line such as "What a step has" can be neither guessed nor searched for."""
    places = [
        f"{path.relative_to(ROOT)}:{line}: {text.splitlines()[0]}"
        for path in sources()
        for line, text in docstrings(ast.parse(path.read_text(encoding="utf-8")))
        if RELATIVE.match(text)
    ]
    assert not places, "\n".join(places)


def names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and name of each variable and attribute that is assigned, each parameter and each function."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield node.lineno, name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield node.lineno, name


def test_a_name_says_what_it_holds():
    places = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in sources()
        for line, name in names(ast.parse(path.read_text(encoding="utf-8")))
        if name.strip("_") in VAGUE
    ]
    assert not places, "\n".join(places)


def test_a_module_is_a_noun():
    assert not [str(path.relative_to(ROOT)) for path in sources() if path.stem in MODULES]
