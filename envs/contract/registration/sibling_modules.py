"""Files next to ``FILE.py`` that it imports: found as for a script, and never confused with namesakes."""

import ast
import importlib
import importlib.util
import sys
from pathlib import Path

from manyturn.envs.contract.python_parser import parse


class NamesakeError(ValueError):
    """A file imports a neighbour by a name that means another module in this process."""


def make_importable(file: Path) -> None:
    """Let a file import what lies next to it, as ``python FILE.py`` does, also later, within its methods.

    The folder goes to the end of ``sys.path`` and stays there, so installed packages come first. Because they do, each
    name that the file imports is looked up before the file runs.

    Raises:
        NamesakeError: a module of a neighbour's name, from elsewhere, is loaded or comes first.
    """
    if str(file.parent) not in sys.path:
        sys.path.append(str(file.parent))
    importlib.invalidate_caches()  # neighbours may be new
    for name, neighbour in _neighbours(file).items():
        if (other := _meant(name)) != str(neighbour.resolve()):
            raise NamesakeError(
                f"{file.name} imports {name}, which in this process is {other}, not {neighbour}: rename {neighbour}"
            )


def source_files(file: Path) -> list[Path]:
    """A file, then the files of its neighbours that it imports, directly or through each other, by name."""
    files = {file: None}
    for neighbour in sorted(_neighbours(file).values()):
        package = neighbour.name == "__init__.py"
        files |= dict.fromkeys(sorted(neighbour.parent.rglob("*.py")) if package else [neighbour])
    return list(files)


def _neighbours(file: Path) -> dict[str, Path]:
    """Name -> file in the same folder, of what a file imports and what these import; a package by its __init__.py."""
    modules, to_read = dict[str, Path](), [file]
    while to_read:
        for name in _imported(to_read.pop()) - modules.keys():
            places = (file.parent / name / "__init__.py", file.parent / f"{name}.py")
            if (there := next((place for place in places if place.is_file()), None)) is not None:
                modules[name] = there
                to_read.append(there)
    return modules


def _imported(file: Path) -> set[str]:
    """First names of the absolute imports of a file, those in its functions too; ours are no neighbours."""
    try:
        nodes = list(ast.walk(parse(file.read_bytes())))
    except (SyntaxError, ValueError):
        return set()  # running the file says where
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module and not node.level}
    return {name.partition(".")[0] for name in names} - {"manyturn"}


def _meant(name: str) -> str:
    """The file that ``import NAME`` gives in this process, or in words what else it gives."""
    if (loaded := sys.modules.get(name)) is not None:
        origin = getattr(loaded, "__file__", None)
    else:
        spec = importlib.util.find_spec(name)
        origin = spec.origin if spec is not None and spec.has_location else None
    return str(Path(origin).resolve()) if origin else "a module without a file"
