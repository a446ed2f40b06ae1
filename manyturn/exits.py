"""How a command ends: the exit code, and the one line that an error becomes."""

import errno
import importlib.metadata
import linecache
import re
import signal
import traceback
from pathlib import Path
from types import FrameType

UNFORESEEN, BAD_INPUT, LEARNING_FAILED, DISK, TOO_MANY_ERRORS, INTERRUPTED, TERMINATED = 1, 2, 3, 4, 5, 130, 143
HELP = (
    "Exit codes: 0 done; 1 an unexpected error, or a check that failed; 2 bad input; 3 learning failed; 4 the disk is "
    "full or cannot be written; 5 too many episodes ended in errors; 130 Ctrl-C; 143 SIGTERM, or 0 for a "
    "training run that saved itself. MANYTURN_DEBUG=1 shows where an error came from."
)
# By name, so that no command has to import what raises them.
_BY_NAME = {"LearningFailed": LEARNING_FAILED, "DiskFull": DISK, "TooManyErrors": TOO_MANY_ERRORS}
_NO_DISK = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO})
_OF_A_FILE = "manyturn_file_"  # modules that the registry makes of FILE.py


class Termination:
    """A handler of SIGTERM that does what Ctrl-C would do, so that everything the command started ends with it.

    Attributes:
        came: whether there was one.
    """

    def __init__(self) -> None:
        self.came = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.came = True
        interrupt = signal.getsignal(signal.SIGINT)
        if callable(interrupt):
            interrupt(signal.SIGINT, frame)
        else:  # a shell lets its background jobs ignore Ctrl-C
            raise KeyboardInterrupt


def innermost(error: BaseException) -> BaseException:
    """The first error of a group, or of a group in it."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def code_of(error: BaseException) -> int:
    """The exit code of a command that ended with an error."""
    ours = [kind.__name__ for kind in type(error).__mro__ if kind.__module__.startswith("manyturn.")]
    for name in ours:
        if name in _BY_NAME:
            return _BY_NAME[name]
    if isinstance(error, OSError) and error.errno in _NO_DISK:
        return DISK
    return BAD_INPUT if _is_foreseen(error) or _extra(error) or _place_in_file(error) else UNFORESEEN


def line_of(error: BaseException) -> str:
    """What went wrong and how to fix it, in one line."""
    text = " ".join(str(error).split()) or type(error).__name__
    if _is_foreseen(error):
        return text
    if extra := _extra(error):
        package = str(getattr(error, "name", "")).partition(".")[0]
        return f"the package {package} is missing: pip install 'manyturn[{extra}]'"
    text = f"{type(error).__name__}: {text}"
    if place := _place_in_file(error):
        return f"{place} raised {text}: fix the file"
    return f"{text} (MANYTURN_DEBUG=1 shows where)"


def _is_foreseen(error: BaseException) -> bool:
    """Whether the text was written for the user: we raised it, or it names a file or a word typed."""
    if type(error).__module__.partition(".")[0] in ("manyturn", "cyclopts"):
        return True
    if isinstance(error, OSError) and error.filename is not None:
        return True
    steps = list(traceback.walk_tb(error.__traceback__))
    if not steps:
        return False
    frame, line = steps[-1]
    here = frame.f_globals.get("__name__", "").startswith("manyturn.")
    return here and linecache.getline(frame.f_code.co_filename, line).strip().startswith("raise ")


def _extra(error: BaseException) -> str | None:
    """The extra of manyturn that brings the package that could not be imported."""
    if not isinstance(error, ModuleNotFoundError) or error.name is None or _place_in_file(error):
        return None
    package = re.escape(error.name.partition(".")[0])
    try:
        requires = importlib.metadata.requires("manyturn") or []
    except importlib.metadata.PackageNotFoundError:
        return None
    found = (re.match(rf"{package}\b.*;.*extra\s*==\s*['\"]([\w-]+)['\"]", need) for need in requires)
    return next((match[1] for match in found if match), None)


def _place_in_file(error: BaseException) -> str | None:
    """Where in an environment's own file it was raised: the innermost of its lines."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{Path(error.filename).name}, line {error.lineno},"
    for frame, line in reversed(list(traceback.walk_tb(error.__traceback__))):
        if frame.f_globals.get("__name__", "").startswith(_OF_A_FILE):
            return f"{Path(frame.f_code.co_filename).name}, line {line},"
    return None
