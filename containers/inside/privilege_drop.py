"""The user without rights in whose name everything of the agent's is done."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

_id = 1000


def be(uid: int, workspace: str) -> None:
    """Say who the agent is, and whose the workspace is.

    The process is undumpable from here on: to change the effective user has that effect.
    """
    global _id
    if not 0 < uid < 1 << 31:
        raise ValueError(f"the agent's user id is {uid}")
    _id = uid
    os.setgroups([])
    if os.stat(workspace).st_uid != uid:
        os.chown(workspace, uid, uid)
    with acting():
        pass


@contextlib.contextmanager
def acting() -> Iterator[None]:
    """Files are reached with the agent's rights, and made as the agent's own.

    The real and the saved user stay root: that keeps the agent's processes from sending signals meanwhile.
    """
    os.setegid(_id)
    os.seteuid(_id)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


def become() -> None:
    """For ever: all three users and groups; the capabilities go with them."""
    os.setresgid(_id, _id, _id)
    os.setresuid(_id, _id, _id)
