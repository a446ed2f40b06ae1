"""``manyturn new-env``: a working environment to change into one's own, and its test."""

import re
import shlex
import sys
from keyword import iskeyword
from pathlib import Path

_ENV = """\
from itertools import permutations

import manyturn as mt
from manyturn.envs.contract.keys import digest

ROWS = sorted((r for r in permutations("ant bee cat dog eel fox gnu".split(), 5) if list(r) != sorted(r)), key=digest)


class CLASS(mt.TextEnv):
    instructions = "Put the animals in alphabetical order. Command: move N, which moves the Nth one place to the right."

    def tasks(self, split):  # no row is in two splits
        rows = {"train": ROWS[::2], "validation": ROWS[1::4], "test": ROWS[3::4]}[split]
        return mt.GeneratedTasks(lambda i: mt.Task(f"{split}/{i}", split, {"row": rows[i]}), len(rows), f"{split}/")

    def begin(self, task, rng):  # everything random inside an episode comes from rng; here nothing is
        self.row = list(task.params["row"])
        return " ".join(self.row)

    def respond(self, action):
        if action not in self.admissible():
            return self.invalid(f"There is no such command. {' '.join(self.row)}")
        self.row.insert(int(action[-1]), self.row.pop(int(action[-1]) - 1))
        return self.succeed("Done.") if self.row == sorted(self.row) else self.go_on(" ".join(self.row))

    def admissible(self):  # what a random policy chooses from
        return ["move 1", "move 2", "move 3", "move 4"]

    def expert(self):  # gives demonstrations, and an upper bound
        return next(f"move {n}" for n in range(1, 5) if self.row[n - 1] > self.row[n])
"""
_TEST = '''\
"""NAME.py keeps the contract that training and evaluation rely on."""

from pathlib import Path

from manyturn.envs.conformance.check import check


def test_NAME_keeps_the_contract():
    report = check(f"{Path(__file__).with_name('NAME.py')}:CLASS")
    assert report.passed, report
'''
_NAME = re.compile(r"[a-z][a-z0-9_]*")


def new_env(name: str, out: Path = Path(".")) -> list[str]:
    """Write ``NAME.py`` and ``test_NAME.py``; never over a file that is there.

    Args:
        name: name of the file; the class is called after it, ``my_world`` giving ``MyWorld``.
        out: the folder, made if need be.

    Returns:
        The commands to go on with.
    """
    _refuse_odd(name)
    cls = "".join(part.capitalize() for part in name.split("_"))
    files = {out / f"{name}.py": _ENV, out / f"test_{name}.py": _TEST}
    for file in files:
        if file.exists() or file.is_symlink():
            raise ValueError(f"{file} is there already: choose another name, or another folder with --out")
    out.mkdir(parents=True, exist_ok=True)
    for file, text in files.items():
        with file.open("x", encoding="utf-8") as opened:  # "x": one that has just appeared is not overwritten either
            opened.write(text.replace("CLASS", cls).replace("NAME", name))
    env = shlex.quote(f"{out / name}.py:{cls}")
    return [f"manyturn play {env}", f"manyturn check {env}", f"manyturn train {env}"]


def _refuse_odd(name: str) -> None:
    """A name must do as a module, and must not hide another one where the file's folder is on the import path."""
    if not _NAME.fullmatch(name):
        better = re.sub(r"\W+", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name), flags=re.ASCII).lower().strip("_")
        hint = f", such as {better}" if _NAME.fullmatch(better) and not iskeyword(better) else ", such as my_world"
        raise ValueError(f"{name!r} is no name for an environment: take small letters, digits and _{hint}")
    if iskeyword(name) or name in sys.stdlib_module_names or name == "manyturn":
        raise ValueError(f"{name!r} means something in Python already: choose another name, such as {name}_world")
