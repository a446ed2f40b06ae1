"""Files that an argument names. Only regular files are opened: a device never ends, and a pipe may never answer."""

import stat
from pathlib import Path

from manyturn.envs.contract.registration.env_registry import NeedsSetup


def regular_file(path: Path, what: str) -> Path:
    """The path of a file that can be read to its end.

    Args:
        path: links are followed.
        what: the file's content, for the message.

    Raises:
        NeedsSetup: there is no file, or it is a folder, a device, a pipe or a socket.
    """
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError) as error:
        raise NeedsSetup(f"no {what} at {path}: {getattr(error, 'strerror', None) or error}") from None
    if not stat.S_ISREG(mode):
        raise NeedsSetup(f"no {what} at {path}: this is no regular file; name one, or copy what it gives into one")
    return path
