"""A host of environments in an actor of Ray: what ``manyturn host`` runs, at an address that the driver is given."""

import asyncio
import contextlib
import ipaddress
import os
import signal
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from manyturn.envs.hosting.pressure import WorkerLimits
from manyturn.serving.env_host import Hosting, host
from manyturn.serving.server import Listening


class RayHost:
    """One host. Its process ends with it, so that Ray starts both again.

    Args:
        hosting: arguments of ``Hosting`` as plain values.
        token: that its driver has to send.
        home: address of the driver's node, and then this one may be nowhere else; None for any node.
    """

    def __init__(self, hosting: Mapping[str, Any], token: str, home: str | None):
        self._hosting = Hosting(**{**hosting, "limits": WorkerLimits(**hosting["limits"])})
        self._token, self._home = token, home
        self._work: asyncio.Task[None] | None = None
        self._found: asyncio.Future[str] | None = None

    async def address(self) -> str:
        """Begin to host. Raises ValueError at a node where that is not allowed."""
        node = import_module("ray").util.get_node_ip_address()
        is_here = is_same_machine(node, self._home or "")
        if self._home is not None and not is_here:
            raise ValueError(f"Ray has placed a host at {node}: {OTHERS}")
        if self._found is None:  # or it was asked before, over a connection that broke
            self._found = asyncio.get_running_loop().create_future()
            place = Listening("127.0.0.1" if is_here else node, 0, self._token)
            self._work = asyncio.create_task(host(self._hosting, place, self._found.set_result))
            self._work.add_done_callback(lambda work: work.cancelled() or os.kill(os.getpid(), signal.SIGKILL))
        return await asyncio.shield(self._found)

    async def lasting(self) -> None:
        """Return never: the call fails when this process has ended."""
        await asyncio.Event().wait()

    async def end(self) -> None:
        """Host no more."""
        if self._work is not None:
            self._work.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._work


OTHERS = (
    "that is another machine: set placement.remote to allow it, and have a network of your own between them, for what "
    "goes over it is not encrypted"
)


def is_same_machine(node: str, home: str) -> bool:
    """Whether a node is on the machine of another one, by their addresses."""
    with contextlib.suppress(ValueError):
        if ipaddress.ip_address(node).is_loopback:
            return True
    return node == home
