"""A deadline for each thing that an environment is asked in a process of its own.

A thread of C watches the clock, so that code which never gives up Python's lock is ended too; it prints where the
environment stands. Where no deadline was set, as in a process that runs an environment for itself, nothing happens.
"""

import faulthandler
import math
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from manyturn.envs.contract.env.error_location import is_machinery_file, is_standard

_SHARE = 0.05  # of the deadline, within which it is not set again: that costs a thread
_TIMED_OUT = "Timeout ("  # how the C library begins what it prints
_FRAME = re.compile(r'File "(?P<file>[^"\n]+)", line (?P<line>\d+) in (?P<name>\S+)')


@dataclass
class _Clock:
    seconds: float = 0.0
    again: float = 0.0
    on_set: Callable[[float], None] = print
    allowed: float = math.inf


_clock = _Clock()


def set_deadline(seconds: float, on_set: Callable[[float], None]) -> None:
    """End this process when an environment does not answer within so many seconds.

    Args:
        on_set: called with the seconds of each deadline as it is set.
    """
    _clock.seconds, _clock.on_set = seconds, on_set
    allow(seconds)
    beat()


def allow(seconds: float) -> None:
    """Say how long one answer may take in this process, for environments that bound what they do."""
    _clock.allowed = seconds


def allowed() -> float:
    """Seconds that one answer may take in this process; infinite where nobody waits."""
    return _clock.allowed


def beat(times: int = 1) -> None:
    """The environment has answered, and may take its time for the next answer.

    Args:
        times: how many answers are waited for, where another asks.
    """
    if not _clock.seconds:
        return
    now = time.monotonic()
    if times == 1 and now < _clock.again:
        return
    limit = times * _clock.seconds
    faulthandler.dump_traceback_later(limit, exit=True, file=2)
    _clock.again = now + _SHARE * _clock.seconds if times == 1 else now
    _clock.on_set(limit)


def _frames(stack: str) -> list[re.Match[str]]:
    """Frames of a thread that are an environment's or a library's."""
    frames = _FRAME.finditer(stack)
    return [frame for frame in frames if not (is_standard(frame["file"]) or is_machinery_file(frame["file"]))]


def where_it_hung(last_words: str) -> str | None:
    """The place at which a process was when its deadline passed; None if it ended otherwise.

    Args:
        last_words: the end of what it wrote to standard error.
    """
    _, timed_out, stacks = last_words.rpartition(_TIMED_OUT)
    if not timed_out:
        return None
    threads = [_frames(stack) for stack in stacks.split("(most recent call first)")[1:]]
    busy = [frames for frames in threads if frames]
    frames = threads[-1] if threads else []  # the main thread comes last
    if not frames and len(busy) == 1:
        [frames] = busy
    own = [frame for frame in frames if "/lib/python" not in frame["file"]]
    for frame in own or frames:
        return f"{Path(frame['file']).name}, line {frame['line']}, in {frame['name']}"
    return "an unknown place"
