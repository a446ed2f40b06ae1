"""Who may give orders to a server of vLLM's, and what is said where none is; none of it needs vLLM."""

import asyncio
import contextlib
import http.server
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import httpx
import pytest
import torch
from vllm_servers import TOKEN, free_port

from manyturn.agents.engine.engine import EngineError, Sampling
from manyturn.agents.engine.engine_config import EngineContext, build_engine
from manyturn.agents.engine.vllm.authentication import VARIABLE, TokenGuard
from manyturn.agents.engine.vllm.options import VllmServerConfig
from manyturn.agents.engine.vllm.server.client import Server
from manyturn.agents.model.language_model import build_tiny
from manyturn.agents.tokens.episode_key import EpisodeKey


def words(address: str, *more: object) -> list[object]:
    serving = ["--engine", "vllm-server", "--engine.addresses", address]
    small = ["--warmup.episodes", 0, "--steps", 0, "--evaluation.limit", 1, "--rollout.max-turns", 1]
    return ["train", "manyturn/Maze-v0", *serving, *small, *more]


@pytest.fixture
def page(tmp_path_factory) -> Iterator[str]:
    """The address of a web server that is no server of vLLM's."""
    files = partial(http.server.SimpleHTTPRequestHandler, directory=str(tmp_path_factory.mktemp("page")))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), files) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_an_address_where_no_such_server_is_says_how_to_start_one(command, page, tmp_path):
    gone = f"http://127.0.0.1:{free_port()}"
    ended = command(*words(gone, "--engine.folder", tmp_path, "--out", tmp_path / "gone"))
    assert ended.code and f"{gone} does not answer" in ended.err and "vllm.server MODEL" in ended.err
    assert not list(tmp_path.glob("manyturn-vllm-*")), "the weights are left there"
    ended = command(*words(page, "--out", tmp_path / "page"))
    assert ended.code and f"{page} does not serve /version" in ended.err and "vllm.server MODEL" in ended.err


def test_a_server_that_others_can_reach_is_used_and_started_with_a_token_alone(command, tmp_path, monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    ended = command(*words("http://gpu7:8000", "--out", tmp_path / "open"))
    assert (
        ended.code == 2 and "http://gpu7:8000 can be reached from other machines" in ended.err and VARIABLE in ended.err
    )
    monkeypatch.setenv(VARIABLE, "guess-me")
    ended = command(*words("http://gpu7:8000", "--out", tmp_path / "short"))
    assert ended.code == 2 and f"{VARIABLE} is no token" in ended.err
    monkeypatch.delenv(VARIABLE)
    serving = [sys.executable, "-m", "manyturn.agents.engine.vllm.server", "model", "--host", "0.0.0.0"]
    served = subprocess.run(serving, capture_output=True, text=True)
    assert served.returncode == 1 and f"{VARIABLE}" in served.stderr and len(served.stderr.splitlines()) == 1


async def status(headers: dict[str, str]) -> int:
    """What the guard answers to an order."""

    async def application(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"done"})

    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=TokenGuard(application))) as client:
        return (await client.post("http://127.0.0.1/collective_rpc", headers=headers)).status_code


def test_every_order_wants_the_token_and_none_comes_from_a_web_page(monkeypatch):
    mine, wrong, page = {"Authorization": f"Bearer {TOKEN}"}, {"Authorization": "Bearer x"}, {"Origin": "http://a.b"}
    monkeypatch.setenv(VARIABLE, TOKEN)
    asked = ({}, wrong, {**mine, **page}, mine)
    assert [asyncio.run(status(headers)) for headers in asked] == [401, 401, 401, 200]
    monkeypatch.delenv(VARIABLE)
    assert [asyncio.run(status(headers)) for headers in ({}, page)] == [200, 401]


async def fails_at(paths: tuple[bytes, ...], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answers once, as vLLM 0.32 does: it closes the connection after an order that failed. A client that has sent
    the next one learns of it too late."""
    with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
        order = await reader.readuntil(b"\r\n\r\n")
        said = b"500 Internal Server Error" if any(path in order for path in paths) else b"200 OK"
        body = b'{"version": "0.32.0"}'
        writer.write(b"HTTP/1.1 %b\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % (said, len(body)))
        writer.write(body)
        await writer.drain()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 5)
    writer.close()


def test_the_order_after_a_refused_one_is_not_lost_with_its_connection():
    async def orders() -> None:
        async with await asyncio.start_server(partial(fails_at, (b"/collective_rpc",)), "127.0.0.1", 0) as listening:
            server = Server(address_of(listening), 30.0)
            with pytest.raises(EngineError, match="answers 500"):
                await server.reload(Path("weights"))
            await server.resume()
            await server.close()

    asyncio.run(orders())


def test_a_server_that_stays_paused_after_it_refused_weights_is_named(maze_texts):
    language = build_tiny(maze_texts, 0, 256, torch.device("cpu"))

    async def told() -> str:
        failing = partial(fails_at, (b"/collective_rpc", b"/resume"))
        async with await asyncio.start_server(failing, "127.0.0.1", 0) as listening:
            config = VllmServerConfig(addresses=(address_of(listening),))
            engine = build_engine(config, EngineContext(language.model, language.template.end_ids))
            with pytest.raises(EngineError) as told:
                await engine.generate(EpisodeKey(0, "train/1", "a", 0), 0, [5, 6], Sampling(max_tokens=2))
            await engine.shutdown()
        return str(told.value)

    assert (
        "has to serve the learner's model" in (said := asyncio.run(told()))
        and "stays paused, so start it again" in said
    )


def address_of(listening: asyncio.Server) -> str:
    return f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
