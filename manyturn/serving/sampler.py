"""A process that draws tokens for a driver elsewhere, by ``manyturn sampler``; see ``remote_samplers/messages.py``.

The driver names the engine and describes the model, whose weights it sends. Nothing of a driver is kept for the next.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect

from manyturn.agents.engine.engine import EngineError
from manyturn.agents.engine.remote_samplers.engine_description import DescribedEngine
from manyturn.agents.engine.remote_samplers.messages import (
    LANGUAGE,
    PATH,
    draw_from_wire,
    error_to_wire,
    key_from_wire,
    reply_to_wire,
)
from manyturn.agents.engine.remote_samplers.weight_channel import Receiver, shapes_of
from manyturn.agents.engine.weight_source import ModuleWeights
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.envs.hosting.handle.messages import encode
from manyturn.envs.hosting.remote.outbox import Outbox, messages_in
from manyturn.envs.hosting.remote.tcp_keepalive import keep_alive
from manyturn.envs.web.server_socket import listening
from manyturn.serving.server import Listening, answer
from manyturn.serving.websocket_worker import OneDriver, beside, refuse
from manyturn.terminal.command_exit import line_of

_BUILD_SECONDS = 1800.0  # for a model, with the engine's own start
_MANY = 2**20  # episodes: there is no limit but the engine's own queue


async def sample(device: str, place: Listening, announce: Callable[[str], object]) -> None:
    """Draw for drivers until cancelled.

    Args:
        device: auto, cpu or cuda.
        announce: called with the address, as soon as it listens.
    """
    from manyturn.trainers.run.setup.policy_model import choose_device

    with contextlib.closing(listening(place.port, place.host)) as socket:
        keep_alive(socket)
        await answer(SamplerServer(choose_device(device)).app(), socket, place, announce)


class SamplerServer(OneDriver):
    """Draws for one driver after the other, on one device."""

    path = PATH

    def __init__(self, device: Any):
        super().__init__()
        self._device = device

    async def serve(self, socket: WebSocket, hello: Mapping[str, Any]) -> None:
        if hello["language"] != LANGUAGE:
            await refuse(socket, "language", "speaks another language: install the same version of manyturn on both")
            return
        try:
            made = await beside(socket, partial(self._made, hello), _BUILD_SECONDS)
        except WebSocketDisconnect:
            raise
        except (Exception, SystemExit) as error:
            await refuse(socket, "engine", f"cannot draw for this run: {line_of(error)}")
            return
        try:
            await socket.send_bytes(encode({"limit": _MANY, "processes": 1}))
            async with _Aboard(made, socket) as aboard:
                await aboard.listen()
        finally:
            await made.engine.shutdown()

    def _made(self, hello: Mapping[str, Any], ended: threading.Event) -> DescribedEngine:
        import torch

        torch.set_num_threads(int(hello["threads"]) or torch.get_num_threads())
        return DescribedEngine(hello, self._device, ended)


class _Aboard:
    """Engine of one driver, as an async context manager that ends it."""

    def __init__(self, made: DescribedEngine, socket: WebSocket):
        self._made, self._engine, self._socket = made, made.engine, socket
        tensors = dict(ModuleWeights(made.model).tensors())
        size = sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())
        self._receiver, self._has_weights = Receiver(shapes_of(tensors), size), False
        self._outbox = Outbox(socket.send_bytes, lambda why: None)  # whoever reads hears of it too
        self._open: set[EpisodeKey] = set()
        self._draws: dict[asyncio.Task[None], tuple[EpisodeKey, int]] = {}

    async def __aenter__(self) -> "_Aboard":
        await self._outbox.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._draws:
            task.cancel()
        if self._draws:
            await asyncio.wait(list(self._draws))
        await self._outbox.__aexit__()

    async def listen(self) -> None:
        """Take messages until the driver hangs up. Raises WebSocketDisconnect, and others for what is no message."""
        while True:
            for message in messages_in(await self._socket.receive_bytes()):
                await self._heed(message)
                await self._outbox.room()

    async def _heed(self, message: Mapping[str, Any]) -> None:
        number, op = message["id"], message["op"]
        match op:
            case "ping":
                self._outbox.put({"id": number, "value": None})
            case "about":
                self._outbox.put({"id": number, "value": self._engine.precision})
            case "expect":
                self._made.barrier.due += message["count"] if self._made.in_rounds else 0
            case "draw":
                draw = draw_from_wire(message)
                task = asyncio.create_task(self._draw(number, *draw))
                self._draws[task] = draw.key, number
                task.add_done_callback(self._drawn)
            case "close":
                self._close(key_from_wire(message["key"]))
            case _:
                self._outbox.put({"id": number, **await self._weights(op, message)})

    def _close(self, key: EpisodeKey) -> None:
        for task in [task for task, (other, _) in self._draws.items() if other == key]:
            task.cancel()
        if key in self._open:
            self._open.remove(key)
            self._engine.close(key)

    def _drawn(self, task: "asyncio.Task[None]") -> None:
        _, number = self._draws.pop(task)
        if task.cancelled():
            self._outbox.put({"id": number, "error": error_to_wire(EngineError("the episode is over"))})
        if self._made.in_rounds:
            self._made.barrier.due -= 1
            self._made.barrier.consider()

    async def _draw(self, number: int, key: EpisodeKey, turn: int, prompt: Any, sampling: Any, choices: Any) -> None:
        engine = self._engine
        try:
            if not self._has_weights:
                raise EngineError("there are no weights yet: send them first")
            if key not in self._open:
                self._open.add(key)
                engine.open(key)
            if choices is None:
                reply = await engine.generate(key, turn, prompt, sampling)
            else:
                reply = await engine.choose(key, turn, prompt, sampling, choices)
            self._outbox.put({"id": number, "value": reply_to_wire(reply)})
        except Exception as error:
            self._outbox.put({"id": number, "error": error_to_wire(error)})

    async def _weights(self, op: str, message: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to a step of a transfer. Raises ValueError for another question."""
        load, receiver = message["load"], self._receiver
        try:
            match op:
                case "weights":
                    receiver.begin(load, message["version"], message["size"], message["digest"])
                case "part":
                    receiver.take(load, message["at"], message["data"])
                case "commit":
                    received = await asyncio.to_thread(receiver.complete, load)
                    self._has_weights = False
                    await self._engine.load(received, received.version)
                    self._has_weights = True
                    return {"value": received.digest}
                case _:
                    raise ValueError(f"there is no question {op!r:.40}")
        except EngineError as error:
            return {"error": error_to_wire(error)}
        return {"value": None}
