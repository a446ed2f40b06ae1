"""Connection of a driver to one sampler, and the weights at the other end of it."""

import asyncio
from typing import Any

from manyturn.agents.engine.engine import EngineError, Reply
from manyturn.agents.engine.remote_samplers.messages import PATH, error_from_wire, reply_from_wire
from manyturn.agents.engine.remote_samplers.weight_channel import Packed
from manyturn.envs.hosting.remote.connection import HostLink, HostLost


class Sampler:
    """Draws with the weights that it was handed last over the connection that is open now.

    Args:
        url, token, hello, silence: as for ``HostLink``.

    Attributes:
        link: the connection.
        precision: type that it computes in.
    """

    def __init__(self, url: str, token: str | None, hello: bytes, silence: float):
        self.link = HostLink(url, token, hello, silence, PATH, error_from_wire)
        self.precision = "float32"
        self._handing = asyncio.Lock()
        self._holds: tuple[int, int] | None = None  # the connection, and the number of the load that it has
        self._versions: set[int] = set()  # of the weights that it had over this connection

    async def connect(self) -> None:
        """Connect; there are no weights yet. Raises HostLost or HostRefused."""
        await self.link.connect()
        self._versions.clear()
        precision = await self.link.ask("about")
        if not isinstance(precision, str):
            raise self._lost(f"it computes in {precision!r:.40}")
        self.precision = precision

    def holds(self, load: int) -> bool:
        """True if it can draw with the weights of this load."""
        return self.link.fault is None and self._holds == (self.link.times, load)

    async def hand_over(self, weights: Packed, load: int) -> None:
        """Have it hold the weights of a load. Raises HostLost; it is not asked for tokens then."""
        async with self._handing:
            if self.holds(load):
                return
            self._holds, times = None, self.link.times
            self._versions.add(weights.version)  # what is drawn while it takes them may have either version
            try:
                await weights.send(self.link.ask, load)
            except EngineError as error:
                raise self._lost(f"it did not take the weights: {error}") from None
            if self.link.is_as(times):
                self._holds = times, load

    def read(self, plain: Any) -> Reply:
        """The reply that an answer is. Raises HostLost for none, and for one with weights that it was not given."""
        try:
            reply = reply_from_wire(plain)
        except (ValueError, TypeError) as error:
            raise self._lost(f"its answer to a draw is none: {error}") from None
        if type(reply.version) is not int or reply.version not in self._versions:
            raise self._lost(f"it draws with weights of version {reply.version!r:.40}, which it was not given")
        return reply

    def _lost(self, why: str) -> HostLost:
        self.link.lose(why)
        return HostLost(f"{self.link.url}: {why}")
