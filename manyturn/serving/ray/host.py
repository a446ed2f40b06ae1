"""Hosts and samplers in actors of Ray: what ``manyturn host`` and ``manyturn sampler`` run, at addresses that the
driver is given.
"""

import abc
import asyncio
import contextlib
import ipaddress
import os
import signal
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from manyturn.envs.hosting.local.resource_use import WorkerLimits
from manyturn.serving.env_host import Hosting, host
from manyturn.serving.server import Listening


class _Actor(abc.ABC):
    """Listens. Its process ends with it, so that Ray starts both again.

    Args:
        token: that its driver has to send.
        home: address of the driver's node, and then this one may be nowhere else; None for any node.
    """

    what: str

    def __init__(self, token: str, home: str | None):
        self._token, self._home = token, home
        self._work: asyncio.Task[None] | None = None
        self._address: asyncio.Future[str] | None = None

    @abc.abstractmethod
    async def serve(self, place: Listening, announce: Callable[[str], object]) -> None:
        """Serve until cancelled; ``announce`` is called with the address."""

    async def address(self) -> str:
        """Begin to serve. Raises ValueError at a node where that is not allowed."""
        node = import_module("ray").util.get_node_ip_address()
        is_here = is_same_machine(node, self._home or "")
        if self._home is not None and not is_here:
            raise ValueError(f"Ray has placed a {self.what} at {node}: {OTHERS}")
        if self._address is None:  # or it was asked before, over a connection that broke
            self._address = asyncio.get_running_loop().create_future()
            place = Listening("127.0.0.1" if is_here else node, 0, self._token)
            self._work = asyncio.create_task(self.serve(place, self._address.set_result))
            self._work.add_done_callback(lambda work: work.cancelled() or os.kill(os.getpid(), signal.SIGKILL))
        return await asyncio.shield(self._address)

    async def lasting(self) -> None:
        """Return never: the call fails when this process has ended."""
        await asyncio.Event().wait()

    async def end(self) -> None:
        """Serve no more."""
        if self._work is not None:
            self._work.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._work


class RayHost(_Actor):
    """One host.

    Args:
        hosting: arguments of ``Hosting`` as plain values.
    """

    what = "host"

    def __init__(self, hosting: Mapping[str, Any], token: str, home: str | None):
        super().__init__(token, home)
        self._hosting = Hosting(**{**hosting, "limits": WorkerLimits(**hosting["limits"])})

    async def serve(self, place: Listening, announce: Callable[[str], object]) -> None:
        await host(self._hosting, place, announce)


class RaySampler(_Actor):
    """One sampler.

    Args:
        on_gpu: whether it may use one, where Ray shows it one.
    """

    what = "sampler"

    def __init__(self, on_gpu: bool, token: str, home: str | None):
        super().__init__(token, home)
        self._device = "auto" if on_gpu else "cpu"

    async def serve(self, place: Listening, announce: Callable[[str], object]) -> None:
        from manyturn.serving.sampler import sample  # which brings torch, and hosts have no use for it

        await sample(self._device, place, announce)


OTHERS = (
    "that is another machine: set placement.remote to allow it, and have a network of your own between them, for what "
    "goes over it is not encrypted"
)


def is_same_machine(node: str, home: str) -> bool:
    """True if two nodes are on the same machine, by their addresses."""
    with contextlib.suppress(ValueError):
        if ipaddress.ip_address(node).is_loopback:
            return True
    return node == home
