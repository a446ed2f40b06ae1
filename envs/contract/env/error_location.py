"""Place of an error in an environment's own code: file, line and function, as errors name them."""

import inspect
import os
import sys
import traceback
from functools import cache
from pathlib import Path
from types import CodeType, FrameType

import gymnasium

OF_A_FILE = "manyturn_file_"  # how the name of a module begins that is made of FILE.py
MACHINERY = ("contract", "hosting", "conformance")  # of manyturn.envs; its other parts are environments
_ENVS = Path(__file__).resolve().parents[2]
_PACKAGES = ("site-packages", "dist-packages")
_shown: set[str] = set()


def place_of(error: BaseException) -> str | None:
    """The innermost line of the environment's code that an error passed, such as ``maze.py, line 12, in respond``.

    Code of installed packages counts only where there is no other. The standard library, the machinery of manyturn and
    Gymnasium never count.
    """
    if isinstance(error, SyntaxError) and error.filename:
        return f"{Path(error.filename).name}, line {error.lineno}"
    steps = [step for step in traceback.walk_tb(error.__traceback__) if not _is_of_others(step[0])]
    own = [step for step in steps if not _is_of_package(step[0].f_code.co_filename)]
    frames = own or steps
    return _written(frames[-1][0].f_code, frames[-1][1]) if frames else None


def place_of_method(env: object, name: str) -> str | None:
    """File and line where an environment, or a wrapper around it, defines a method; None if neither does."""
    layer = env
    while layer is not None:
        method = inspect.unwrap(getattr(type(layer), name, None) or _no_method)
        code = getattr(method, "__code__", None)
        if code is not None and not (_is_machinery(method.__module__) or is_standard(code.co_filename)):
            return _written(code, code.co_firstlineno)
        layer = layer.env if isinstance(layer, gymnasium.Wrapper) else None
    return None


def _no_method() -> None:
    """Stand-in for a method that a class does not have."""


def place_in(frame: FrameType | None) -> str | None:
    """The innermost line of an environment's code in a stack, from its innermost frame; None if there is none."""
    while frame is not None and (_is_of_others(frame) or _is_of_package(frame.f_code.co_filename)):
        frame = frame.f_back
    return _written(frame.f_code, frame.f_lineno) if frame is not None else None


def is_of_file(error: BaseException) -> bool:
    """True if an error passed through code of a ``FILE.py`` that was named as an environment."""
    return any(_name(frame).startswith(OF_A_FILE) for frame, _ in traceback.walk_tb(error.__traceback__))


def show_if_debugging(error: BaseException) -> None:
    """With MANYTURN_DEBUG=1, print where an error came from that a command goes on after; the same one once."""
    if not os.environ.get("MANYTURN_DEBUG"):
        return
    text = "".join(traceback.format_exception(error))
    if text not in _shown:
        _shown.add(text)
        print(text, file=sys.stderr, flush=True)


def _written(code: CodeType, line: int | None) -> str:
    name = code.co_name
    where = f"{Path(code.co_filename).name}, line {line}"
    return where if name == "<module>" else f"{where}, in {name}"


def _name(frame: FrameType) -> str:
    return frame.f_globals.get("__name__", "")


def _is_of_others(frame: FrameType) -> bool:
    return _is_machinery(_name(frame)) or is_standard(frame.f_code.co_filename)


def _is_machinery(module: str) -> bool:
    parts = module.split(".")
    if parts[0] != "manyturn":
        return parts[0] == "gymnasium"
    return parts[1:2] != ["envs"] or len(parts) < 3 or parts[2] in MACHINERY


def is_standard(file: str) -> bool:
    """True if a file is the standard library's."""
    return file.startswith("<frozen") or (file.startswith(_standard_folders()) and not _is_of_package(file))


@cache
def _standard_folders() -> tuple[str, ...]:
    import sysconfig  # takes milliseconds, which only an error needs

    return tuple(dict.fromkeys(sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib")))


def is_machinery_file(file: str) -> bool:
    """True if a file is of the machinery of manyturn or of Gymnasium, where only its name is known.

    >>> is_machinery_file(__file__), is_machinery_file("maze.py")
    (True, False)
    """
    path = Path(file).resolve()  # a checkout has links to the folders
    return any(_ENVS / room in path.parents for room in MACHINERY) or "gymnasium" in path.parts


def _is_of_package(file: str) -> bool:
    return any(folder in Path(file).parts for folder in _PACKAGES)
