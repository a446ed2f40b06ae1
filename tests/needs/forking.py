"""Runs Python programs, each in a process of its own, forked from this one, which has imported the trainer once.

A line of the input is a JSON object: ``words`` as they stand after ``python``, which begin with ``-m MODULE`` or with a
script; the ``folder`` to run in; all of the ``environ``; and the files ``out`` and ``err`` for what the program says.
Each is answered with the exit status. Nothing here may start a thread: a forked process would lack it.
"""

import json
import os
import runpy
import sys
from pathlib import Path
from typing import Any

import manyturn.api.training
import manyturn.cli.app
import manyturn.trainers.run.loop.loop  # noqa: F401


def main() -> None:
    for line in sys.stdin:
        asked = json.loads(line)
        child = os.fork()
        if child == 0:
            _become(asked)
            _run(asked["words"])
            sys.exit()
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _become(asked: dict[str, Any]) -> None:
    os.chdir(asked["folder"])
    os.environ.clear()
    os.environ.update(asked["environ"])
    path = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:0] = [entry for entry in path if entry and entry not in sys.path]
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for name, number in (("out", 1), ("err", 2)):
        os.dup2(os.open(asked[name], os.O_WRONLY | os.O_CREAT), number)


def _run(words: list[str]) -> None:
    if words[0] == "-m":
        _, module, *rest = words
        sys.argv = [module, *rest]
        sys.path.insert(0, os.getcwd())
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    else:
        sys.argv = words
        sys.path.insert(0, str(Path(words[0]).resolve().parent))
        runpy.run_path(words[0], run_name="__main__")


if __name__ == "__main__":
    main()
