"""Inference by servers of vLLM's, which read weights from a folder that they share with the learner.

An episode stays with the server that holds its prefix. New ones go to the server with the fewest, and to none that does
not answer. A server that was started again draws with the weights that it was started with, which its replies say: they
are not taken, and it gets the weights once more before it is asked again. New weights go to all servers or count as
lost: one that does not take them is an error.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from manyturn.agents.engine.engine import EngineError
from manyturn.agents.engine.vllm.base_engine import CopyingEngine
from manyturn.agents.engine.vllm.reply_request import Drawer
from manyturn.agents.engine.vllm.server.client import OthersWeights, Server, ServerSilent
from manyturn.agents.tokens.episode_key import EpisodeKey

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from manyturn.agents.engine.vllm.options import VllmServerConfig


class VllmServerEngine(CopyingEngine):
    """Draws replies with servers; see ``CopyingEngine``."""

    def __init__(self, model: "PreTrainedModel", end_ids: frozenset[int], config: "VllmServerConfig"):
        folder = Path(config.folder).resolve() if config.folder else None
        super().__init__(model, end_ids, config, config.precision(on_gpu=model.device.type == "cuda"), folder)
        self._servers = [Server(address, config.timeout) for address in config.addresses]
        self._sleeps, self._awake = config.sleeps, not config.sleeps  # a run that was killed has left them asleep
        self._holds: dict[Server, int] = {}  # the load that a server has, and in ``_below`` the file's checksum
        self._below: dict[Server, str] = {}
        self._handing = {server: asyncio.Lock() for server in self._servers}
        self._place: dict[EpisodeKey, Server] = {}

    def open(self, key: EpisodeKey) -> None:
        busy = Counter(self._place.values())
        there = [server for server in self._servers if not server.is_down] or self._servers
        self._place[key] = min(there, key=lambda server: busy[server])

    def close(self, key: EpisodeKey) -> None:
        self._place.pop(key, None)

    async def _drawer(self, key: EpisodeKey) -> Server:
        if key not in self._place:
            self.open(key)
        server = self._place[key]
        await self._hand_over(server)
        return server

    def _failed(self, drawer: Drawer, error: Exception) -> None:
        assert isinstance(drawer, Server)
        if isinstance(error, OthersWeights):
            self._forget(drawer)

    def _forget(self, server: Server) -> None:
        """Nobody knows what a server holds."""
        self._holds.pop(server, None)
        self._below.pop(server, None)

    async def _hand_over(self, server: Server) -> None:
        """Have a server hold what the folder holds."""
        async with self._handing[server]:
            loads = self._loads
            if self._holds.get(server) == loads:
                return
            try:
                await server.check_release()
                await self._replace(server, self._label(loads))
            except BaseException:
                self._forget(server)
                raise
            self._holds[server] = loads

    async def _replace(self, server: Server, label: str) -> None:
        """Put what the folder holds in place of a server's weights, and have it draw again."""
        try:
            await server.pause()
            await server.name_weights(f"{label}-incomplete")  # until all of them are there
            if self._below.get(server) != self._folder.digest:
                self._check(await server.reload(self._folder.file))
                self._below[server] = self._folder.digest
            if self._folder.adapters is not None:
                await server.take_adapters(self._folder.adapters, label)
            await server.name_weights(label)
        except EngineError as error:
            await _resume_after(server, error)
            raise
        await server.resume()

    async def _before_load(self) -> None:
        self._holds.clear()
        wakes = not self._awake and self._sleeps
        await _all(server.wake_weights() if wakes else server.pause() for server in self._servers)

    async def _after_load(self, old: Path | None) -> None:
        await self._hand_to_all()

    async def _hand_to_all(self) -> None:
        await _all(self._hand_over(server) for server in self._servers)

    def _load_failed(self) -> None:
        self._holds.clear()

    async def sleep(self) -> None:
        if self._awake and self._sleeps:
            await _all(server.sleep() for server in self._servers)
        self._awake = False

    async def wake(self) -> None:
        if not self._awake and self._sleeps:
            await _all(server.wake() for server in self._servers)
        await self._hand_to_all()
        self._awake = True

    async def shutdown(self) -> None:
        await _all(server.close() for server in self._servers)
        self._folder.remove()


async def _resume_after(server: Server, error: EngineError) -> None:
    """Have a server draw again that did not take weights: whoever else uses it gets an answer, and does not wait.

    Raises EngineError with both causes if it stays paused; a server that does not answer at all has been named already.
    """
    try:
        await server.resume()
    except EngineError as second:
        if not isinstance(error, ServerSilent):
            raise type(error)(f"{error}. It stays paused, so start it again: {second}") from error


async def _all(calls: Iterable[Awaitable[None]]) -> None:
    """Wait for all calls to end. Raises what the first of them raised, and says so of the others."""
    ended = await asyncio.gather(*calls, return_exceptions=True)
    failed = [end for end in ended if isinstance(end, BaseException)]
    if len(failed) > 1 and all(isinstance(end, EngineError) for end in failed):
        raise EngineError("; ".join(f"{end}" for end in failed))
    if failed:
        raise failed[0]
