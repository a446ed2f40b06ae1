"""Hosts that Ray places, restarts and finds; what is played goes over the wire of ``hosted_seats.py``. Samplers and
ranks are placed along with them.

Ray runs in a process of its own, the placer, for Ray ends the process that speaks with it when its head is gone. A
keeper holds the placer and, where no cluster is named, all of Ray: nothing of it outlives this process.
"""

import asyncio
import contextlib
import os
import re
import secrets
import shutil
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, cast

from manyturn.envs.contract.registration.env_registry import guarded_arguments, is_file
from manyturn.envs.hosting.handle.env_spec_message import KEEPER
from manyturn.envs.hosting.handle.messages import LIMIT, decode, encode
from manyturn.envs.hosting.local.resource_use import USUAL, WorkerLimits
from manyturn.envs.hosting.local.seats import USUAL_TIMEOUT
from manyturn.envs.hosting.remote.connection import HostRefused
from manyturn.envs.hosting.remote.hosted_seats import HostedSeats, Hosts, HostsLost

_END_SECONDS = 10.0  # Ray's own end takes one or two
_TAIL_BYTES = 4000
_HEAD_SECONDS = "10"  # after which what we have started of Ray ends without its head


@dataclass(frozen=True)
class RayHosts:
    """Resources requested from Ray.

    Args:
        count: hosts.
        cluster: ``auto``, or ``HOST:PORT`` of one that runs; None starts one on this machine.
        cpus, resources: of a host, on a cluster that runs; there Ray counts them.
        remote: whether nodes on other machines may be used.
        workers, timeout, limits: of each host, as for ``open_seats``.
        wait, silence: as for ``Hosts``.
        ranks: processes that learn along with this one.
        port: where this one listens for them.
        samplers: processes that draw tokens.
        gpus: of a sampler, on a cluster that runs.
    """

    count: int = 1
    cluster: str | None = None
    cpus: float = 1.0
    resources: Mapping[str, float] = field(default_factory=dict)
    remote: bool = False
    workers: int = 0
    timeout: float = USUAL_TIMEOUT
    limits: WorkerLimits = USUAL
    wait: float = 60.0
    silence: float = 30.0
    ranks: int = 0
    port: int | None = None
    samplers: int = 0
    gpus: float = 0.0


class PlacedSamplers(Protocol):
    """Whoever draws with samplers that Ray has placed."""

    def has_address(self, number: int, url: str) -> None:
        """The sampler of this number is at this address now."""
        ...

    def expect_no_more(self, why: str) -> None:
        """Nobody starts samplers again."""
        ...


class RaySeats(HostedSeats):
    """Seats at hosts in actors of Ray; ``async with`` has them placed, connects to them, and ends them.

    Args:
        name, kwargs, wrappers, limit: as for ``InlineSeats``. A file has to be at the same path on every node.

    Attributes:
        token: that hosts and samplers ask for.
        sampler_urls: where samplers are, once they are placed.
        drawing: who is to hear of it when they are elsewhere.
    """

    def __init__(self, name: str, kwargs: Mapping[str, Any] | None, wrappers: Sequence[Any], limit: int, ray: RayHosts):
        self.token = secrets.token_hex(32)
        super().__init__(name, kwargs, wrappers, limit, Hosts([""] * ray.count, self.token, ray.wait, ray.silence))
        file, _, kind = name.rpartition(":")
        args = dict(kwargs or {})
        self._cluster = ray.cluster
        self._request = {
            **{
                word: getattr(ray, word)
                for word in ("count", "cluster", "cpus", "gpus", "resources", "remote", "ranks", "port", "samplers")
            },
            "token": self.token,
            "started_in": str(Path.cwd()),
            "hosting": {
                "env": f"{Path(file).resolve()}:{kind}" if is_file(name) else name,
                "args": {word: value for word, value in args.items() if word in guarded_arguments(name, args)},
                "limit": limit,  # so that one host can carry all when the others are gone
                "workers": ray.workers,
                "timeout": ray.timeout,
                "limits": ray.limits.model_dump(),
            },
        }
        self._placed_hosts, self._ready, self._state = set[int](), set[int](), "Ray has not answered"
        self._rank_end, self._has_rank_end = "", asyncio.Event()
        self.sampler_urls, self.drawing = [""] * ray.samplers, cast("PlacedSamplers | None", None)
        self._placer: _Placer | None = None

    async def __aenter__(self) -> "RaySeats":
        self._placed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        try:
            self._placer = await _Placer.start(self._request, self._hear, self._lose)
            async with asyncio.timeout(self._wait):
                await self._placed
        except BaseException as error:
            await self.close()
            if isinstance(error, TimeoutError):
                raise HostsLost(
                    f"Ray has placed {self._placed_words()} within {self._wait:g} s "
                    f"({self._state}): set a longer placement.wait, or fewer or smaller hosts"
                ) from None
            raise
        await super().__aenter__()
        return self

    async def close(self) -> None:
        await super().close()
        placer, self._placer = self._placer, None
        if placer is not None:
            await placer.close()

    async def rank_end(self) -> str:
        """First rank that ends before the run, and the reason."""
        await self._has_rank_end.wait()
        return self._rank_end

    def _hear(self, message: Mapping[str, Any]) -> None:
        """Heed what the placer says."""
        if "sampler" in message:
            self.sampler_urls[message["sampler"]] = message["url"]
            if self.drawing is not None:
                self.drawing.has_address(message["sampler"], message["url"])
            self._count_placed()
        elif "url" in message:
            self._placed_hosts.add(message["host"])
            self.has_address(message["host"], message["url"])
            self._count_placed()
        elif "ready" in message:
            self._ready.add(message["ready"])
            self._count_placed()
        elif "ended" in message:
            self._lose_rank(f"rank {message['rank']} has ended ({message['ended']})")
        elif "state" in message:
            self._state = message["state"]
        else:
            self._lose(message["refused"], HostRefused)

    def _count_placed(self) -> None:
        is_whole = all(there == needed for there, needed in self._parts().values())
        if is_whole and not self._placed.done():
            self._placed.set_result(None)

    def _parts(self) -> dict[str, tuple[int, int]]:
        """Number of each that is there, and the number needed."""
        request = self._request
        return {
            "hosts": (len(self._placed_hosts), request["count"]),
            "samplers": (sum(map(bool, self.sampler_urls)), request["samplers"]),
            "ranks": (len(self._ready), request["ranks"]),
        }

    def _placed_words(self) -> str:
        return " and ".join(f"{there} of {needed} {what}" for what, (there, needed) in self._parts().items() if needed)

    def _lose_rank(self, why: str) -> None:
        if not self._placed.done():
            self._placed.set_exception(HostsLost(why))
        self._rank_end = self._rank_end or why
        self._has_rank_end.set()

    def _lose(self, why: str, kind: type[Exception] = HostsLost) -> None:
        """Ray places nothing any more; hosts that still answer are played at, unless ranks were lost with it."""
        if self._placed.done():
            self.expect_no_more(why)
            if self.drawing is not None:
                self.drawing.expect_no_more(why)
            if self._request["ranks"]:
                self._lose_rank(why)
        else:
            self._placed.set_exception(kind(why))

    def _start_one(self) -> str:
        return "Ray has placed it there: can this machine reach that address?"

    def _go_on(self) -> str:
        fix = f"see that Ray's cluster {self._cluster} runs, and " if self._cluster else ""
        return f"{fix}go on with manyturn train --resume RUN; placement in its config.toml may be another"


class _Placer:
    """The process that speaks with Ray.

    Attributes:
        speaks: whether Ray has answered it.
    """

    def __init__(self, process: asyncio.subprocess.Process, folder: str, hear: Any, lose: Any):
        self.speaks = False
        self._process, self._folder, self._hear, self._lose = process, folder, hear, lose
        self._stderr = b""
        self._tasks = [asyncio.create_task(self._read()), asyncio.create_task(self._read_stderr())]

    @classmethod
    async def start(cls, request: Mapping[str, Any], hear: Any, lose: Any) -> "_Placer":
        """Start it.

        Args:
            hear: called with what it says.
            lose: called with why it says nothing more.
        """
        folder = tempfile.mkdtemp(prefix="mt-ray-")  # short, for the names of sockets
        environ = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0"}
        if request["cluster"] is None:
            # Its ports are open on every address of this machine, and whoever may speak there may run anything.
            environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
            environ |= {"RAY_gcs_rpc_server_reconnect_timeout_s": _HEAD_SECONDS}
            environ |= {"RAY_worker_niceness": "0"}  # otherwise hosts and samplers wait for whatever else runs here
        try:
            process = await asyncio.create_subprocess_exec(
                *(*KEEPER, str(os.getpid())),
                *(sys.executable, "-P", "-m", "manyturn.serving.ray.launcher"),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,  # what a terminal sends is meant for this process
                limit=LIMIT,
                env=environ,
            )
        except OSError:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        assert process.stdin is not None
        process.stdin.write(encode({**request, "folder": folder}))
        return cls(process, folder, hear, lose)

    async def close(self) -> None:
        """End the hosts, what was started of Ray, and what is left of both."""
        assert self._process.stdin is not None
        for task in self._tasks[:1]:
            task.cancel()
        self._process.stdin.close()
        if self.speaks:
            await self._ended(_END_SECONDS)
        for number in (signal.SIGTERM, signal.SIGKILL):  # the first has the keeper kill all that is below it
            if self._process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self._process.pid, number)
                await self._ended(_END_SECONDS)
        for task in self._tasks:
            task.cancel()
        await asyncio.wait(self._tasks)
        shutil.rmtree(self._folder, ignore_errors=True)

    async def _ended(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), seconds)

    async def _read(self) -> None:
        assert self._process.stdout is not None
        with contextlib.suppress(ValueError, LookupError, TypeError):
            while line := await self._process.stdout.readline():
                self._hear(decode(line))
                self.speaks = True
        await self._ended(_END_SECONDS)
        lines = self._stderr.decode(errors="replace").strip().splitlines()
        words = re.sub(r"^\[.*?\] (\w+\.\w+:\d+: )?", "", lines[-1]) if lines else ""  # without clock and line of code
        first = words.partition(". ")[0]
        self._lose(f"Ray was lost: {first:.300}" if first else "Ray was lost")

    async def _read_stderr(self) -> None:
        assert self._process.stderr is not None
        while chunk := await self._process.stderr.read(65536):
            self._stderr = (self._stderr + chunk)[-_TAIL_BYTES:]
