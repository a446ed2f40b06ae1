"""Landlock rules: folders that a command may write to, where owners and modes leave gaps.

A process owns its files in /proc. By one of them, ``oom_score_adj``, a command could have the kernel kill the tool
server in its place when memory runs out. Nothing else is lost, for the image is read-only. Kernels before 5.19, and
runtimes without Landlock, enforce none of this: there such a command ends its container.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION, _PATH_BENEATH = 1, 1
_WRITE, _TRUNCATE, _MOVE = 1 << 1, 1 << 14, 1 << 13
_MAKE_AND_REMOVE = sum(1 << bit for bit in range(4, 13))
_SINCE = {_MOVE: 2, _TRUNCATE: 3}
_DEVICES = "/dev"

_rules = -1


def prepare(places: Sequence[str]) -> None:
    """Say once where commands may write, besides to devices, if the kernel enforces that."""
    global _rules
    try:
        version = _call(_CREATE_RULESET, None, 0, _VERSION)
    except (ImportError, OSError):  # not every Python has ctypes
        return
    if version < _SINCE[_MOVE]:
        return
    handled = _WRITE | _MAKE_AND_REMOVE | sum(right for right, since in _SINCE.items() if version >= since)
    _rules = _call(_CREATE_RULESET, struct.pack("=Q", handled), 8, 0)
    for path in places:
        _allow(path, handled)
    _allow(_DEVICES, handled & (_WRITE | _TRUNCATE))


def enforced() -> bool:
    """True if the kernel enforces it."""
    return _rules >= 0


def enter() -> None:
    """From here on this process and all that it starts write there alone."""
    if enforced():
        _call(_RESTRICT_SELF, _rules, 0)


def _allow(path: str, rights: int) -> None:
    folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        _call(_ADD_RULE, _rules, _PATH_BENEATH, struct.pack("=Qi", rights, folder), 0)
    finally:
        os.close(folder)


def _call(number: int, *words: int | bytes | None) -> int:
    import ctypes

    given = [ctypes.c_long(word) if isinstance(word, int) else word for word in (number, *words)]
    result = int(ctypes.CDLL(None, use_errno=True).syscall(*given))
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
