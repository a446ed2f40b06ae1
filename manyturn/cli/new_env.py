"""``manyturn new-env``: a working environment to change into one's own, and its test."""

import ast
import importlib.resources
import re
import shlex
import sys
from collections.abc import Mapping
from keyword import iskeyword
from pathlib import Path

from manyturn.cli.starters.plugin import env_id, plugin_files
from manyturn.envs.contract.options.options import unknown

KINDS = ("text", "tools", "roles", "gymnasium")
_TEST = '''\
"""NAME.py keeps the contract that training and evaluation rely on."""

from pathlib import Path

import manyturn as mt


def test_NAME_keeps_the_contract():
    report = mt.check(f"{Path(__file__).with_name('NAME.py')}:CLASS")
    assert report.passed, report
'''
_FIRST_STEPS = 10  # as on docs/first-hour.md
_CLASS = re.compile(r"^class (\w+)\(", re.MULTILINE)
_NAME = re.compile(r"[a-z][a-z0-9_]*")


def new_env(name: str, out: Path = Path("."), kind: str = "text") -> list[str]:
    """Write ``NAME.py`` and ``test_NAME.py``; never over a file that is there.

    Args:
        name: name of the file; the class is called after it, ``my_world`` giving ``MyWorld``.
        out: the folder, made if need be.
        kind: one of ``KINDS``; each is a file of ``manyturn/cli/starters``.

    Returns:
        The commands to go on with.
    """
    _refuse_odd(name)
    cls = _class_of(name)
    test = _TEST.replace("CLASS", cls).replace("NAME", name)
    _write({out / f"{name}.py": _starter(kind, cls), out / f"test_{name}.py": test})
    env = shlex.quote(f"{out / name}.py:{cls}")
    own = f"pip install pytest && python -m pytest {shlex.quote(str(out / f'test_{name}.py'))}"
    train = f"manyturn train {env} --steps {_FIRST_STEPS}    # a first try; without --steps, a whole run"
    return [f"manyturn play {env}", f"manyturn check {env}", train, own]


def new_package(name: str, out: Path = Path("."), kind: str = "text") -> list[str]:
    """Write a plugin package in the folder ``NAME``: project, module, environment, test, README.

    Args:
        name: name of the folder and of the module in it; the class is called after it.
        out: the folder above.
        kind: see ``new_env``.

    Returns:
        The commands to go on with.
    """
    _refuse_odd(name)
    cls, folder = _class_of(name), out / name
    _write({folder / path: text for path, text in plugin_files(name, cls, _starter(kind, cls)).items()})
    env = env_id(name, cls)
    first = f"manyturn train {env} --steps {_FIRST_STEPS}    # a first try; without --steps, a whole run"
    return [f"pip install -e {shlex.quote(str(folder))}", f"manyturn check {env}", f"manyturn play {env}", first]


def _class_of(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


def _write(files: Mapping[Path, str]) -> None:
    """Write new files. Raises ValueError if one of them is there, and then writes none."""
    for file in files:
        if file.exists() or file.is_symlink():
            raise ValueError(f"{file} is there already: choose another name, or another folder with --out")
    for file, text in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("x", encoding="utf-8") as opened:  # "x": one that has just appeared is not overwritten either
            opened.write(text)


def _starter(kind: str, cls: str) -> str:
    """The text of an environment of this kind, its class called ``cls``."""
    if kind not in KINDS:
        raise ValueError(unknown("kind", kind, KINDS))
    text = (importlib.resources.files("manyturn.cli.starters") / f"{kind}.py").read_text(encoding="utf-8")
    if cls in {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}:
        raise ValueError(f"the file has another {cls}: choose another name, such as {cls.lower()}_world")
    return _CLASS.sub(f"class {cls}(", text)


def _refuse_odd(name: str) -> None:
    """A name must do as a module, and must not hide another one where the file's folder is on the import path."""
    if not _NAME.fullmatch(name):
        better = re.sub(r"\W+", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name), flags=re.ASCII).lower().strip("_")
        hint = f", such as {better}" if _NAME.fullmatch(better) and not iskeyword(better) else ", such as my_world"
        raise ValueError(f"{name!r} is no name for an environment: take small letters, digits and _{hint}")
    if iskeyword(name) or name in sys.stdlib_module_names or name in ("manyturn", "gymnasium"):
        raise ValueError(f"{name!r} means something in Python already: choose another name, such as {name}_world")
