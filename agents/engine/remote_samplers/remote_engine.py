"""Inference by samplers: engines in processes elsewhere, that ``manyturn sampler`` has started.

An episode stays with the sampler that holds its prefix. When a sampler is lost, what it was asked is asked of another
one, which draws the same tokens, since their noise comes from the episode's key. New weights go to all samplers. One
that does not take them, or was started again, is asked for nothing until it has the newest.

An engine that computes in rounds is asked in rounds: each begins when every open episode has asked, here, and its
requests are announced to each sampler. So rounds do not depend on how long environments or networks take.
"""

import asyncio
import contextlib
import secrets
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from manyturn.agents.engine.engine import BaseEngine, EngineError, EngineLost, Reply, Sampling
from manyturn.agents.engine.engine_config import EngineConfig, EngineContext
from manyturn.agents.engine.remote_samplers.engine_description import description
from manyturn.agents.engine.remote_samplers.messages import LANGUAGE, draw_to_wire
from manyturn.agents.engine.remote_samplers.sampler_connection import Sampler
from manyturn.agents.engine.remote_samplers.weight_channel import Packed
from manyturn.agents.engine.weight_source import ModuleWeights, Weights
from manyturn.agents.text.choice_decoding import Choices
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.envs.contract.random_keys import seed_of
from manyturn.envs.hosting.handle.messages import encode
from manyturn.envs.hosting.remote.connection import HostLost, HostRefused

_MOVES = 3  # samplers that may be lost while they draw one reply, before that is an error
_PAUSE, _LONGEST_PAUSE = 0.2, 5.0  # seconds between two attempts to reach a sampler


@dataclass(frozen=True)
class Samplers:
    """Addresses of samplers, and time limits for them.

    Args:
        urls: their addresses.
        token: that they ask for; None for none.
        wait: seconds until all have to answer at the beginning, and until one has to come back when none is left.
        silence: seconds without a sign of life after which a sampler that owes an answer counts as lost.
        threads: CPU threads of the model at each; 0 for all.
        start_one: advice about one that does not answer.
        go_on: advice for a run that has lost all.
    """

    urls: Sequence[str]
    token: str | None = field(default=None, repr=False)
    wait: float = 60.0
    silence: float = 30.0
    threads: int = 1
    start_one: str = "is it running? manyturn sampler --port N starts one, and placement.samplers names it"
    go_on: str = (
        "start samplers at these addresses and go on with manyturn train --resume RUN; placement.samplers in its "
        "config.toml may name others"
    )


class _Request:
    def __init__(self, key: EpisodeKey, length: int, fields: Mapping[str, Any]):
        self.key, self.length, self.fields, self.moves = key, length, fields, 0
        self.answer: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()


class RemoteEngine(BaseEngine):
    """Draws with samplers; see ``Engine``.

    Args:
        config: the engine at each sampler.
    """

    def __init__(self, context: EngineContext, config: EngineConfig, at: Samplers):
        self.version, self.vocabulary = 0, context.model.config.get_text_config().vocab_size
        self.capabilities = config.capabilities._replace(scores=False)  # samplers draw, and do nothing else
        hello = {"driver": secrets.token_hex(8), "language": LANGUAGE, **description(context, config, at.threads)}
        self.samplers = [Sampler(url, at.token, encode(hello), at.silence) for url in at.urls]
        self._model, self._wait, self._at = context.model, at.wait, at
        self._loads, self._has_failed = 0, False
        self._weights: Packed | None = None
        self._changed = asyncio.Event()  # a sampler was lost, or has got weights
        self._keepers: list[asyncio.Task[None]] = []
        self._places: dict[EpisodeKey, tuple[Sampler, int]] = {}  # with the number of its connection
        self._open: set[EpisodeKey] = set()
        self._waiting: list[_Request] = []
        self._running: asyncio.Task[None] | None = None
        self._moved = 0
        self._over: str | None = None  # why no sampler will come back
        self._barrier = context.barrier if config.capabilities.keeps_bits else None
        if self._barrier is not None:
            self._barrier.join(self)

    async def ready(self) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                for sampler in self.samplers:
                    group.create_task(self._reached(sampler))
        except BaseExceptionGroup as several:
            error: BaseException = several
            while isinstance(error, BaseExceptionGroup):
                error = error.exceptions[0]
            raise error from None
        coarse = sorted({sampler.precision for sampler in self.samplers} - {"float32"})
        self.precision = coarse[0] if coarse else "float32"
        self._keepers = [asyncio.create_task(self._keep(sampler)) for sampler in self.samplers]

    async def shutdown(self) -> None:
        tasks = [task for task in (*self._keepers, self._running) if task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await asyncio.gather(*(sampler.link.close() for sampler in self.samplers))

    def figures(self) -> Mapping[str, float]:
        figures: dict[str, float] = {
            "lost_samplers": sum(sampler.link.fault is not None for sampler in self.samplers),
            "moved_draws": self._moved,
        }
        self._moved = 0
        for number, sampler in enumerate(self.samplers, 1):
            there, idle = sampler.link.occupancy.shares()
            figures |= {f"sampler_{number}/draws_there": there, f"sampler_{number}/idle_share": idle}
        return figures

    # ---- weights ------------------------------------------------------------------------------------------------

    async def load(self, weights: Weights, version: int) -> None:
        # Requests that come during the load wait until a sampler has them.
        self._weights, self._has_failed = Packed(weights, version), False
        self._loads += 1
        try:
            await asyncio.gather(*(self._hand_over(sampler) for sampler in self.samplers if sampler.link.fault is None))
            await self._able()
        except BaseException:
            self._has_failed = True
            raise
        self.version = version

    async def wake(self) -> None:
        if not self._loads:
            await self.load(ModuleWeights(self._model), self.version)

    async def _hand_over(self, sampler: Sampler) -> None:
        """Have a sampler hold the newest weights; one that does not take them is connected to once more."""
        with contextlib.suppress(HostLost):
            while self._weights is not None and sampler.link.fault is None and not sampler.holds(self._loads):
                await sampler.hand_over(self._weights, self._loads)
        self._has_changed()

    # ---- where samplers are -----------------------------------------------------------------------------------------

    def has_address(self, number: int, url: str) -> None:
        """A sampler is at this address now: what was at another one is gone, or soon will be."""
        link = self.samplers[number].link
        if link.url != url:
            link.url = url
            link.lose("it was started at another address")

    def expect_no_more(self, why: str) -> None:
        """Nobody starts samplers again: once none of them answers, the run need not wait."""
        self._over = why
        self._has_changed()

    # ---- which sampler --------------------------------------------------------------------------------------------

    async def _reached(self, sampler: Sampler) -> None:
        """Connect to a sampler that may be about to start. Raises HostRefused, and EngineLost where none answers."""
        until, pause = _time() + self._wait, _PAUSE
        while True:
            try:
                return await sampler.connect()
            except HostLost as error:
                if _time() + pause > until:
                    raise EngineLost(f"{error}; {self._at.start_one}") from None
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def _keep(self, sampler: Sampler) -> None:
        """Connect to a sampler once more whenever it was lost, and give it the newest weights."""
        link = sampler.link
        while True:
            await link.ended.wait()
            self._has_changed()
            pause = _PAUSE
            while link.fault is not None:
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
                try:
                    await sampler.connect()
                except (HostLost, HostRefused) as error:  # another may be started there yet
                    link.fault = str(error).removeprefix(f"{link.url}: ")
                    continue
                await self._hand_over(sampler)

    def _has_changed(self) -> None:
        self._changed.set()

    async def _able(self) -> list[Sampler]:
        """Samplers with the newest weights, once there are any. Raises EngineLost where none is left for too long."""
        until: float | None = None
        while True:
            if able := [sampler for sampler in self.samplers if sampler.holds(self._loads)]:
                return able
            gone = all(sampler.link.fault is not None for sampler in self.samplers)
            if gone and self._over is not None:
                raise EngineLost(self._complaint())
            until = (until or _time() + self._wait) if gone else None  # one that takes weights may take its time
            self._changed.clear()
            try:
                async with asyncio.timeout_at(until):
                    await self._changed.wait()
            except TimeoutError:
                raise EngineLost(self._complaint()) from None

    def _complaint(self) -> str:
        states = "; ".join(f"{sampler.link.url}: {sampler.link.fault or 'has no weights'}" for sampler in self.samplers)
        why = self._over or f"no sampler could draw within {self._wait:g} s"
        return f"{why} ({states}): {self._at.go_on}"

    def _place(self, key: EpisodeKey, able: Sequence[Sampler]) -> Sampler:
        """The sampler that draws for an episode: the same as before, as long as that can."""
        sampler, times = self._places.get(key, (None, 0))
        if sampler is not None and sampler.link.is_as(times) and sampler in able:
            return sampler
        if self._barrier is None:
            busy = Counter(placed for placed, _ in self._places.values())
            sampler = min(able, key=lambda placed: busy[placed])
        else:  # what a round consists of must not depend on when others ended
            number = seed_of("sampler", key.seed, key.stage, key.task) + key.member
            preferred = self.samplers[number % len(self.samplers)]
            sampler = preferred if preferred in able else able[number % len(able)]
        self._places[key] = sampler, sampler.link.times
        return sampler

    # ---- episodes -------------------------------------------------------------------------------------------------

    def open(self, key: EpisodeKey) -> None:
        self._open.add(key)

    def close(self, key: EpisodeKey) -> None:
        self._open.discard(key)
        sampler, times = self._places.pop(key, (None, 0))
        if sampler is not None and sampler.link.is_as(times):
            sampler.link.tell("close", key=list(key))
        if self._barrier is not None:
            self._barrier.consider()

    async def _reply(
        self, key: EpisodeKey, turn: int, prompt_ids: Sequence[int], sampling: Sampling, choices: Choices | None
    ) -> Reply:
        if not prompt_ids:
            raise EngineError("an empty prompt")
        if self._has_failed:
            raise EngineError("the last load of weights failed: load again")
        if choices is not None and choices.forced is not None:  # no other episode waits for it
            return self._forced(choices.forced)
        request = _Request(key, len(prompt_ids), draw_to_wire(key, turn, prompt_ids, sampling, choices))
        if self._barrier is None:
            while not request.answer.done():
                await self._drawn([request])
            return request.answer.result()
        self._waiting.append(request)
        self._barrier.consider()
        try:
            return await request.answer
        finally:
            if request in self._waiting:  # it was cancelled
                self._waiting.remove(request)

    async def _drawn(self, requests: Sequence[_Request]) -> None:
        """Ask samplers, once; what a sampler was asked that is lost has no answer yet. Raises EngineLost."""
        able = await self._able()
        by_sampler: dict[Sampler, list[_Request]] = {}
        for request in requests:
            by_sampler.setdefault(self._place(request.key, able), []).append(request)
        # Nothing is awaited until all are on their way: what is announced comes.
        answers = [(sampler, request) for sampler, those in by_sampler.items() for request in those]
        for sampler, those in by_sampler.items():
            sampler.link.tell("expect", count=len(those))
        coming = [sampler.link.question("draw", **request.fields) for sampler, request in answers]
        await asyncio.gather(*(self._settle(*pair, future) for pair, future in zip(answers, coming, strict=True)))

    async def _settle(self, sampler: Sampler, request: _Request, coming: "asyncio.Future[Any]") -> None:
        sampler.link.occupancy.change(1)
        answer = request.answer
        try:
            reply = sampler.read(await coming)
            if not answer.done():
                answer.set_result(reply)
        except HostLost as error:
            request.moves += 1
            self._moved += 1
            if request.moves > _MOVES and not answer.done():
                answer.set_exception(EngineError(f"{request.moves} samplers were lost while they drew it: {error}"))
        except Exception as error:
            if not answer.done():
                answer.set_exception(error)
        finally:
            sampler.link.occupancy.change(-1)

    # ---- rounds, for its barrier ----------------------------------------------------------------------------------

    @property
    def episodes(self) -> Set[EpisodeKey]:
        return self._open

    @property
    def asking(self) -> int:
        return len(self._waiting)

    def consider(self) -> None:
        if self._running is None and self._waiting:
            asyncio.get_running_loop().call_soon(self._start_if_all_asked)

    def _start_if_all_asked(self) -> None:
        if self._running is None and self._barrier is not None and self._barrier.all_asked:
            self._barrier.start()

    def start(self) -> None:
        if self._running is None and self._waiting:
            self._running = asyncio.get_running_loop().create_task(self._round())
            self._running.add_done_callback(self._ended)

    async def _round(self) -> None:
        pending, self._waiting = sorted(self._waiting, key=lambda request: (request.length, request.key)), []
        try:
            while pending:
                await self._drawn(pending)
                pending = [request for request in pending if not request.answer.done()]
        except EngineLost as error:
            for request in pending:
                if not request.answer.done():
                    request.answer.set_exception(error)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._running = None
        if self._barrier is not None:
            self._barrier.consider()


def _time() -> float:
    return asyncio.get_running_loop().time()
