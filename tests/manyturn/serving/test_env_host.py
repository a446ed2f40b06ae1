"""A host that runs what the network names: files, arguments that decide what runs, or anything without its token."""

import asyncio
import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

if any(find_spec(name) is None for name in ("uvicorn", "wsproto", "websockets")):
    pytest.skip("no hosts: pip install 'manyturn[hosts]'", allow_module_level=True)

from elsewhere import host_processes, hosting
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from manyturn.envs.hosting.handle.messages import decode, encode
from manyturn.envs.hosting.remote.connection import HostLink, HostLost, HostRefused
from manyturn.envs.hosting.remote.hosted_seats import HostedSeats, Hosts

pytestmark = pytest.mark.versions

MAZE = "manyturn/Maze-v0"
TOKEN = "0123456789abcdef-a-token"
ENVS = Path(__file__).parents[2] / "envs"
FAULTY = f"{ENVS / 'faulty.py'}:Faulty"


EXPOSED = [
    (("--host", "0.0.0.0"), "--host 0.0.0.0 lets other machines in: give --token or MANYTURN_TOKEN"),
    (("--token", "short"), "at least 16 ASCII characters"),
    (("--port", "70000"), "between 0 and 65535"),
]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        *((("host", *words), message) for words, message in EXPOSED),
        *((("sampler", *words), message) for words, message in EXPOSED),
        (("host", "--limit", "0"), "--limit is at least 1"),
        (("host", "--env.args.size", "3"), "--env.args are those of an environment: name it too"),
        (("host", "manyturn/Maez-v0"), "no environment 'manyturn/Maez-v0'; did you mean manyturn/Maze-v0"),
        (("host", "none.py:World"), "no file"),
        (("host", MAZE, "--env.args.size", "3"), "takes no argument 'size'"),
        (("host", MAZE, "--env.args.difficulty", "hard"), "--env.args.difficulty has no effect"),
    ],
)
def test_what_cannot_be_hosted_is_refused_in_one_line(command, monkeypatch, words, message):
    monkeypatch.delenv("MANYTURN_TOKEN", raising=False)
    ended = command(*words)
    assert ended.code == 2 and message in ended.err and ended.err.count("\n") == 1 and not ended.out


def hello(env: str, args: Any = None, wrappers: Any = ()) -> dict[str, Any]:
    return {"env": env, "args": args or {}, "wrappers": list(wrappers), "world": {}, "driver": "d"}


def refusal(said: dict[str, Any], **options: Any) -> str:
    """What a host says to a driver, which must be a refusal."""

    async def ask():
        async with hosting(**options) as [url]:
            link = HostLink(url, None, encode(said), 30.0)
            try:
                with pytest.raises(HostRefused) as refused:
                    await link.connect()
            finally:
                await link.close()
        return str(refused.value)

    return asyncio.run(ask())


def test_a_run_cannot_name_code(tmp_path):
    ran = tmp_path / "ran"
    file = tmp_path / "trap.py"
    file.write_text(f"open({str(ran)!r}, 'w')\nimport manyturn as mt\n\n\nclass Trap(mt.TextEnv): ...\n")
    for name in (f"{file}:Trap", str(file), "openenv:http://127.0.0.1:1"):
        assert "builds registered environments alone" in refusal(hello(name))
        assert f"hosts {MAZE} alone" in refusal(hello(name), env=MAZE)
    for name in ("trap:Trap-v0", "os:system", f"{file.stem}", "manyturn/None-v0", "", "../x", "CartPole-v1"):
        refusal(hello(name))
    assert "hosts faulty.py:Faulty alone" in refusal(hello(f"{file}:Trap"), env=FAULTY)
    assert not ran.exists()


@pytest.mark.parametrize(
    ("env", "args", "word", "other"),
    [
        ("manyturn/Code-v0", {"engine": {"image": "evil"}}, "engine", "other"),
        ("manyturn/Search-v0", {"corpus": "/dev/zero"}, "corpus", "/etc/passwd"),
        ("manyturn/Talk-Booking-v0", {"user": {"kind": "model", "model": "m"}}, "user", "model"),
        ("manyturn/Talk-Booking-v0", {"user": {"kind": "replay", "file": "/etc/shadow"}}, "user", "replay"),
        ("manyturn/AppWorld-v0", {"python": "/bin/sh"}, "python", "other"),
        ("manyturn/Talk-Booking-v0", {"user": {"base_url": "http://192.0.2.1"}}, "user", {"base_url": "other"}),
    ],
)
def test_arguments_that_decide_what_runs_come_from_the_hosts_command_line(env, args, word, other):
    assert f"takes env.args.{word} from its own command line alone" in refusal(hello(env, args))
    assert f"takes env.args.{word} from" in refusal(hello(env, args), env=env, args={word: other})
    assert "from its own command line" not in refusal(hello(env, args), env=env, args=args)


@pytest.mark.parametrize("kind", ["device", "pipe", "folder"])
def test_a_host_that_may_read_a_file_reads_no_device_and_waits_for_no_pipe(kind, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    place = {"device": "/dev/zero", "pipe": f"{tmp_path}/pipe", "folder": f"{tmp_path}"}[kind]
    for env, args in (
        ("manyturn/Search-v0", {"corpus": place, "questions": place}),
        ("manyturn/Talk-Booking-v0", {"user": {"kind": "replay", "file": place}}),
        ("manyturn/Software-v0", {"source": f"tasks:{place}"}),
    ):
        assert f"at {place}: this is no regular file" in refusal(hello(env, args), env=env, args=args)


def test_arguments_of_a_file_of_the_users_are_taken_where_the_host_names_them_too():
    async def play(args: dict[str, Any]) -> str:
        async with hosting(env=FAULTY, args={"greeting": "hé"}) as urls:
            seats = HostedSeats(FAULTY, args, (), 1, Hosts(urls))
            async with seats, seats.take() as seat:
                return (await seat.reset(seats.tasks("train")[0], seed=0)).observation

    assert asyncio.run(play({"greeting": "hé"})).startswith("hé 0 ")
    with pytest.raises(HostRefused, match=r"takes env.args.greeting from its own command line alone"):
        asyncio.run(play({"greeting": "ho"}))


@pytest.mark.parametrize("workers", ["0", "1"])
def test_a_file_that_is_edited_while_its_host_waits_is_refused(workers, tmp_path):
    """The host has loaded the old class, and its workers would load the new one."""
    file = tmp_path / "faulty.py"
    file.write_text((ENVS / "faulty.py").read_text())

    async def join(env: str, url: str):
        async with HostedSeats(env, None, (), 1, Hosts([url])):
            pass

    with host_processes(1, f"{file}:Faulty", "--workers", workers) as [waiting]:
        url = waiting.url
        file.write_text(file.read_text().replace('"won"', '"gained"'))
        for env in (f"{file}:Faulty", FAULTY):
            with pytest.raises(HostRefused, match=r"loaded faulty\.py:Faulty before it was edited: start"):
                asyncio.run(join(env, url))


def test_another_version_of_an_environment_is_refused(tmp_path):
    other = tmp_path / "faulty.py"
    other.write_text((ENVS / "faulty.py").read_text().replace('"won"', '"gained"'))

    async def join():
        async with hosting(env=f"{other}:Faulty") as urls, HostedSeats(FAULTY, None, (), 1, Hosts(urls)):
            pass

    with pytest.raises(HostRefused, match=r"has another version of the environment \(source\): give both the same"):
        asyncio.run(join())


def test_a_token_is_asked_for_and_pages_reach_nothing():
    async def knock():
        async with hosting(token=TOKEN) as [url]:
            for wrong in (None, TOKEN[:-1]):
                link = HostLink(url, wrong, encode(hello(MAZE)), 30.0)
                with pytest.raises(HostRefused, match="MANYTURN_TOKEN") as refused:
                    await link.connect()
                assert TOKEN not in str(refused.value)
            async with HostedSeats(MAZE, None, (), 1, Hosts([url], TOKEN)) as seats, seats.take() as seat:
                await seat.reset(seats.tasks("train")[0], seed=0)
        async with hosting() as [url]:
            socket = f"{url.replace('http', 'ws')}/host"
            for headers in ({"Origin": "http://evil.example"}, {"Host": "evil.example"}):
                with pytest.raises(InvalidStatus):
                    await connect(socket, additional_headers=headers, proxy=None)

    asyncio.run(knock())


NONSENSE = {
    "no JSON": b"{\n",
    "no end": b'{"id": 1, "op": "ping"}',
    "text": "words",
    "no number": encode({"op": "ping"}),
    "no question": encode({"id": 1}),
    "no episode": encode({"id": 1, "op": "step", "episode": 3, "action": "north"}),
    "nested": b'{"id": ' + b"[" * 100_000 + b"\n",
    "unhashable": encode({"id": 1, "op": "reset", "episode": [1]}),
    "too many": b"".join(encode({"id": n, "op": "reset", "episode": n, "task": {}, "seed": 0}) for n in range(9)),
}


@pytest.mark.parametrize("said", NONSENSE)
def test_a_driver_that_says_nonsense_is_hung_up_on_and_the_next_one_is_served(said):
    async def babble():
        async with hosting(limit=2) as [url]:
            seats = HostedSeats(MAZE, None, (), 2, Hosts([url]))
            async with connect(f"{url.replace('http', 'ws')}/host", proxy=None) as socket:
                await socket.send(encode({**hello(MAZE), "world": seats.world()}))
                greeting = await socket.recv()
                assert isinstance(greeting, bytes) and decode(greeting)["limit"] == 2
                await socket.send(NONSENSE[said])
                with pytest.raises(ConnectionClosed):
                    while True:
                        await asyncio.wait_for(socket.recv(), 10)
            async with seats, seats.take() as seat:
                await seat.reset(seats.tasks("train")[0], seed=0)

    asyncio.run(babble())


def test_questions_that_no_environment_understands_are_errors_of_that_episode():
    async def ask():
        async with hosting() as [url]:
            seats = HostedSeats(MAZE, None, (), 2, Hosts([url]))
            async with connect(f"{url.replace('http', 'ws')}/host", proxy=None) as socket:
                await socket.send(encode({**hello(MAZE), "world": seats.world()}))
                await socket.recv()
                for question in ({"task": {}, "seed": 0}, {"task": {"id": "x"}, "seed": "y"}, {}):
                    await socket.send(encode({"id": 1, "op": "reset", "episode": 1, **question}))
                    answer = await asyncio.wait_for(socket.recv(), 10)
                    assert isinstance(answer, bytes) and set(decode(answer)) == {"id", "error"}
            await seats.close()

    asyncio.run(ask())


def test_an_address_without_a_host_is_no_host():
    async def knock():
        link = HostLink("http://127.0.0.1:9", None, encode(hello(MAZE)), 30.0)
        with pytest.raises(HostLost, match=r"^http://127\.0\.0\.1:9: "):
            await link.connect()

    asyncio.run(knock())
