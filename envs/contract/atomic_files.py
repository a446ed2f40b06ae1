"""Files that are either complete or not there: written aside, synced, renamed."""

import errno
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from manyturn.envs.contract.credential_mask import masked


def sync(path: Path) -> None:
    """Wait until a file's bytes, or a folder's names, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def replace_file(path: Path, write: Callable[[Path], object]) -> None:
    """Replace a file completely or not at all.

    Args:
        path: the file; its folder must exist.
        write: fills the file that it is given, which is next to ``path`` until it is complete.

    Raises:
        OSError: it cannot be written, with ``path`` as the file's name.
    """
    if path.exists() and not path.is_file():  # a folder, or a device such as /dev/stdout, which would be replaced
        raise OSError(errno.EEXIST, "is no regular file", str(path))
    # The process id keeps two writers apart; the last to finish wins, and neither reads a mixture.
    aside = path.with_name(f".{path.name}.{os.getpid()}.writing")
    try:
        write(aside)
        sync(aside)
        aside.replace(path)
    except OSError as error:
        if error.filename in (str(aside), aside):
            error.filename, error.filename2 = str(path), None  # the one that the caller knows
        raise
    finally:
        with suppress(OSError):
            aside.unlink(missing_ok=True)
    sync(path.parent)


def clear_leftovers(folder: Path) -> None:
    """Remove what writers that were killed have left next to their files; for the one who alone may write there."""
    for leftover in folder.glob(".*.writing"):
        if leftover.is_dir():
            shutil.rmtree(leftover)
        else:
            leftover.unlink()


def replace_text(path: Path, text: str) -> None:
    """Replace a file's text, in UTF-8 and without secrets, completely or not at all."""
    replace_file(path, lambda aside: aside.write_text(masked(text), encoding="utf-8"))


def cache_of(name: str) -> Path:
    """Folder of what can be made again: ``$MANYTURN_CACHE/NAME``, or ``~/.cache/manyturn/NAME``."""
    return Path(os.environ.get("MANYTURN_CACHE") or Path.home() / ".cache" / "manyturn") / name
