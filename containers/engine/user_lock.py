"""A lock that processes of one user share, for what only one of them should make at a time."""

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from manyturn.containers.sandbox import EngineUnavailable


@contextlib.contextmanager
def user_lock(what: str) -> Iterator[None]:
    """Waits for other processes of this user that make the same kind of image. Raises EngineUnavailable."""
    path = Path(tempfile.gettempdir()) / f"manyturn-{what}-{os.getuid()}.lock"
    try:
        # The folder is everybody's: no link of another's is followed.
        opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise EngineUnavailable(
            f"{path} cannot be opened as a lock ({error.strerror}): remove it, or set TMPDIR to a folder of your own"
        ) from error
    with os.fdopen(opened, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
