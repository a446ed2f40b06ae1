"""``manyturn new-env``: a working environment to change into one's own, and its test."""

import ast
import importlib.resources
import re
import shlex
import sys
from keyword import iskeyword
from pathlib import Path

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
    cls = "".join(part.capitalize() for part in name.split("_"))
    test = _TEST.replace("CLASS", cls).replace("NAME", name)
    files = {out / f"{name}.py": _starter(kind, cls), out / f"test_{name}.py": test}
    for file in files:
        if file.exists() or file.is_symlink():
            raise ValueError(f"{file} is there already: choose another name, or another folder with --out")
    out.mkdir(parents=True, exist_ok=True)
    for file, text in files.items():
        with file.open("x", encoding="utf-8") as opened:  # "x": one that has just appeared is not overwritten either
            opened.write(text)
    env = shlex.quote(f"{out / name}.py:{cls}")
    own = f"pip install pytest && python -m pytest {shlex.quote(str(out / f'test_{name}.py'))}"
    train = f"manyturn train {env} --steps {_FIRST_STEPS}    # a first try; without --steps, a whole run"
    return [f"manyturn play {env}", f"manyturn check {env}", train, own]


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
