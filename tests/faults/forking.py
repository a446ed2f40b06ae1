"""Runs classes of faults, each in a process of its own, forked from this one, which has imported once what they need.

A line of the input is a JSON list: a file for what the class says, and the words for ``run.py``. Each is answered with
the exit status. Nothing here may start a thread: a forked process would lack it.
"""

import json
import os
import sys

import drawing  # noqa: F401  the engine, seconds of imports
import run
import short_runs  # noqa: F401  the trainer


def main() -> None:
    for line in sys.stdin:
        said, *words = json.loads(line)
        child = os.fork()
        if child == 0:
            _speak_into(said)
            sys.argv[1:] = words
            run.main()  # which ends the process
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _speak_into(said: str) -> None:
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    file = os.open(said, os.O_WRONLY | os.O_CREAT)
    os.dup2(file, 1)
    os.dup2(file, 2)


if __name__ == "__main__":
    main()
