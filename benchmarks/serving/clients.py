"""Clients of served environments, one for each wire: they begin an episode and play its turns, and nothing else."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Protocol, Self

import httpx
from wsproto import ConnectionType, WSConnection, events


class Player(Protocol):
    """An episode at a time, elsewhere."""

    async def begin(self, seed: int) -> str: ...
    async def act(self, text: str) -> tuple[str, float, bool]: ...


class Talk:
    """A WebSocket to a server on this machine, over which any message can be sent.

    OpenEnv's own client is in no environment that has ours; what it sends is this.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
        self._reader, self._writer = reader, writer
        self._connection = WSConnection(ConnectionType.CLIENT)

    @classmethod
    async def open(cls, url: str, path: str = "/ws", headers: Any = ()) -> Self:
        """A connection. Raises ConnectionRefusedError with the status if the server does not accept it."""
        port = int(url.rpartition(":")[2])
        talk = cls(*await asyncio.open_connection("127.0.0.1", port))
        talk._write(events.Request(host=f"127.0.0.1:{port}", target=path, extra_headers=list(headers)))
        await talk._next(events.AcceptConnection)
        return talk

    async def say(self, message: Any) -> dict[str, Any]:
        """The answer to a message, which is sent as JSON unless it is text or bytes."""
        self._write(events.Message(data=message if isinstance(message, str | bytes) else json.dumps(message)))
        return await self.hear()

    async def hear(self) -> dict[str, Any]:
        """The next message of the server. Raises EOFError if it has hung up."""
        return json.loads(await self._next(events.TextMessage))

    async def begin(self, seed: int) -> str:
        """The first text of an episode."""
        return (await self.say({"type": "reset", "data": {"seed": seed}}))["data"]["observation"]["text"]

    async def act(self, text: str) -> tuple[str, float, bool]:
        """Text, reward and whether the episode is over."""
        data = (await self.say({"type": "step", "data": {"text": text}}))["data"]
        return data["observation"]["text"], data["reward"], data["done"]

    def drop(self) -> None:
        """Hang up without a word."""
        self._writer.transport.abort()

    def _write(self, event: Any) -> None:
        self._writer.write(self._connection.send(event))

    async def _next(self, kind: Any) -> Any:
        text = ""
        while True:
            for event in self._connection.events():
                if isinstance(event, events.RejectConnection):
                    raise ConnectionRefusedError(event.status_code)
                if isinstance(event, events.CloseConnection):
                    raise EOFError(event.code)
                if isinstance(event, events.Ping):
                    self._write(event.response())
                if isinstance(event, kind):
                    text += getattr(event, "data", "")
                    if getattr(event, "message_finished", True):
                        return text
            data = await self._reader.read(2**16)
            if not data:
                raise EOFError
            self._connection.receive_data(data)


class Called:
    """Episodes over MCP; many can share one client of the SDK."""

    def __init__(self, client: Any):
        self._client, self._episode = client, ""

    async def begin(self, seed: int) -> str:
        """The first text of an episode."""
        result = await self._client.call_tool("begin", {"seed": seed})
        self._episode = result.structured_content["episode"]
        return result.structured_content["text"]

    async def act(self, text: str) -> tuple[str, float, bool]:
        """Text, reward and whether the episode is over."""
        result = await self._client.call_tool("act", {"episode": self._episode, "text": text})
        now = result.structured_content
        return now["text"], result.meta["manyturn/reward"], now["ended"]


class Visited:
    """Episodes over requests of NeMo Gym's agent, with a cookie; what the agent sends is this."""

    def __init__(self, client: httpx.AsyncClient):
        self._client = client

    async def begin(self, seed: int) -> str:
        """The first text of an episode."""
        answer = await self._post("/reset", {"responses_create_params": {"input": []}, "manyturn": {"seed": seed}})
        return answer["observation"]

    async def act(self, text: str) -> tuple[str, float, bool]:
        """Text, reward and whether the episode is over."""
        message = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
        now = await self._post("/step", {"responses_create_params": {"input": []}, "response": {"output": [message]}})
        return now["observation"], now["reward"], now["terminated"] or now["truncated"]

    async def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        return (await self._client.post(path, json=body)).raise_for_status().json()


@asynccontextmanager
async def players(wire: str, url: str, count: int) -> AsyncIterator[list[Player]]:
    """So many, for a server whose address is ``url``."""
    if wire == "openenv":
        talks = [await Talk.open(url) for _ in range(count)]
        yield list(talks)
        for talk in talks:
            talk.drop()
        return
    if wire == "nemo-gym":
        async with AsyncExitStack() as stack:
            clients = [await stack.enter_async_context(httpx.AsyncClient(base_url=url)) for _ in range(count)]
            yield [Visited(client) for client in clients]
        return
    from mcp import Client

    async with Client(url) as client:
        yield [Called(client) for _ in range(count)]
