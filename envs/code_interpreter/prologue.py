"""Prologue of the program that a sandbox's Python (3.8 or later) runs before the cells; see ``session.py``.

Its argument is how many of the cells ran before; their output goes nowhere. A call of ``_ended`` follows each cell.
File descriptor 3 gets a dot when the program begins, and one for each cell that has ended.
"""

import os as _os
import sys as _sys

_process, _seen, _unseen = _os.getpid(), (1, 2), 0


def _ended():
    global _unseen
    _sys.stdout.flush()
    if _os.getpid() != _process:  # a fork that the cell forgot
        _os._exit(0)
    _os.write(3, b".")
    _unseen -= 1
    if _unseen == 0:
        _os.dup2(_seen[0], 1)
        _os.dup2(_seen[1], 2)


if __name__ == "__main__":
    _seen, _unseen = (_os.dup(1), _os.dup(2)), int(_sys.argv.pop())
    if _unseen:
        for _number in (1, 2):
            _os.dup2(_os.open(_os.devnull, _os.O_WRONLY), _number)
    _os.write(3, b".")
