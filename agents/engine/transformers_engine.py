"""Inference with a transformers model in this process, on CPU or GPU.

Requests join a running batch pass by pass, and leave it when their replies end. Each episode keeps its keys and values
from turn to turn, so that a turn computes only its new tokens, and those that begin alike share the beginning. All of
it lies in a memory of a size that is known beforehand: a request waits until there is room for it.

Rows are independent: sampling noise comes from the episode's key, so what is drawn does not depend on which rows share
a pass, save for rounding. Where it may not even move a bit, a round begins when every open episode has asked, and
others join only with the next round: what is computed together then depends only on the episodes, and not on
how long their environments take.
"""

import asyncio
from collections.abc import Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import torch
from transformers import PreTrainedModel

from manyturn.agents.engine.batch_barrier import BatchBarrier
from manyturn.agents.engine.decoding.decoder import Decoder
from manyturn.agents.engine.decoding.given_replies import scored
from manyturn.agents.engine.decoding.memory import cache_shape, pages_for, ran_out
from manyturn.agents.engine.decoding.page_pool import PAGE, PagePool
from manyturn.agents.engine.decoding.prefix_cache import Caches
from manyturn.agents.engine.decoding.recorded_pass import recorder_for
from manyturn.agents.engine.decoding.row import Row
from manyturn.agents.engine.engine import (
    BaseEngine,
    Capabilities,
    EngineError,
    EngineRefused,
    GivenReply,
    Reply,
    Sampling,
)
from manyturn.agents.engine.merged_adapters import MergedAdapters, copy_weights
from manyturn.agents.engine.weight_source import Weights
from manyturn.agents.text.choice_decoding import Choices
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.envs.contract.random_keys import generator


@dataclass(slots=True, eq=False)
class _Request:
    key: EpisodeKey
    row: Row
    answer: asyncio.Future[Reply]


class TransformersEngine(BaseEngine):
    """Draws replies from a causal language model.

    Args:
        model: any transformers causal language model with full attention and a plain output head.
        end_ids: tokens that end a reply.
        max_batch: rows computed together.
        reproducible: whether a round waits for all open episodes, and is reproducible to the bit.
        barrier: of the engines that play the same episodes; None: it is the only one.
        copied: whether nothing else uses the model, so that it can leave the device while the engine sleeps.
        cache_bytes: for keys and values; None: enough for ``max_batch`` episodes of 2048 tokens.
        merged: adds adapters to the weights of ``model``; None: it has none, or they stay apart.

    Attributes:
        drawn_tokens, read_tokens: tokens drawn or forced, and prompt tokens computed, since the engine was made.
        batch_limit: rows computed together; less than ``max_batch`` after memory ran out.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        end_ids: frozenset[int],
        max_batch: int = 256,
        *,
        reproducible: bool = True,
        barrier: BatchBarrier | None = None,
        copied: bool = False,
        cache_bytes: float | None = None,
        merged: MergedAdapters | None = None,
    ):
        self._model, self._device, self._copied, self._merged = model, model.device, copied, merged
        if model.dtype in (torch.bfloat16, torch.float16):
            self.precision = str(model.dtype).removeprefix("torch.")
        self.version, self.vocabulary = 0, model.config.get_text_config().vocab_size
        self.capabilities = Capabilities(
            reproducible, entropy=True, lora=True, choices=True, own_weights=True, scores=True, commands=True
        )
        self._whole = True  # whether the weights are those of one version
        self._awake = True
        shape = cache_shape(model.config, model.dtype)
        self._pool = PagePool(shape, pages_for(shape, cache_bytes, max_batch), model.device)
        self._caches = Caches(self._pool)
        self._decoder = Decoder(model, end_ids, self._pool, recorder_for(model.device))
        self._ends = end_ids
        self.batch_limit, self._out_of_memory, self._redrawn = max_batch, 0, 0
        self._reproducible = reproducible
        self._barrier = barrier or BatchBarrier()
        self._barrier.join(self)
        self._open: set[EpisodeKey] = set()
        self._left: set[EpisodeKey] = set()  # closed during a round, whose room is free after it
        self._waiting: list[_Request] = []  # not of this round
        self._queue: list[_Request] = []
        self._rows: list[_Request] = []  # being drawn
        self._runner = ThreadPoolExecutor(1, thread_name_prefix="engine")
        self._running: asyncio.Task[None] | None = None
        self.drawn_tokens = self.read_tokens = 0
        self._told_seconds = (0.0, 0.0)

    @property
    def episodes(self) -> Set[EpisodeKey]:
        """Open episodes."""
        return self._open

    @property
    def asking(self) -> int:
        """Requests that no round has taken yet."""
        return len(self._waiting)

    @property
    def drawing(self) -> int:
        """Requests that are being drawn."""
        return len(self._rows)

    @property
    def cached(self) -> Set[EpisodeKey]:
        """Episodes of which keys and values are kept."""
        return self._caches.entries.keys()  # type: ignore[return-value]

    def open(self, key: EpisodeKey) -> None:
        if key in self._open:
            raise ValueError(f"episode {key} is open already: two episodes need two keys")
        self._open.add(key)

    def close(self, key: EpisodeKey) -> None:
        self._open.discard(key)
        if self._running is not None and self._reproducible:
            self._left.add(key)  # when its room comes free must not depend on how long its environment took
        else:
            self._caches.forget(key)
        self._barrier.consider()

    @property
    def kept_bytes(self) -> int:
        """Peak bytes of keys and values since the engine was made."""
        return self._pool.most * PAGE * self._pool.shape.position_bytes

    @property
    def wake_bytes(self) -> float:
        if self._awake or not self._copied:
            return 0.0
        return float(sum(weights.nbytes for weights in self._model.parameters()))

    @property
    def _limit(self) -> int:
        return self.batch_limit or 1  # it is known here from the beginning

    def figures(self) -> Mapping[str, float]:
        times, self._out_of_memory = self._out_of_memory, 0
        decoder, past = self._decoder, self._told_seconds
        self._told_seconds = decoder.read_seconds, decoder.draw_seconds
        read, draw = (round(now - then, 3) for now, then in zip(self._told_seconds, past, strict=True))
        redrawn, self._redrawn = self._redrawn, 0
        figures = {"batch_limit": self._limit, "out_of_memory": times, "read_seconds": read, "draw_seconds": draw}
        return figures | ({"redrawn_tokens": redrawn} if redrawn else {})

    # Nothing in load, sleep and wake is awaited: no pass can begin, and no cancellation can come, in their middle.

    async def load(self, weights: Weights, version: int) -> None:
        self._finish_pass()
        self._whole = False
        # The same noise again: with weights that are the same to the bit, a reply is what it would have been.
        self._redrawn += sum(len(request.row.ids) for request in self._rows)
        self._start_over()
        self._caches.clear()
        if self._merged is not None:
            self._merged.load(weights)
        elif weights.module is self._model:
            self._decoder.forget_recorded()  # who changed its weights may have put them elsewhere
        else:
            copy_weights(self._model, weights)  # where it sleeps away from the device, from there to the CPU
        self.version, self._whole = version, True

    async def sleep(self) -> None:
        self._finish_pass()
        self._awake = False
        self._start_over()
        self._caches.clear()
        self._decoder.forget_recorded()
        self._pool.let_go()
        if self._copied:
            self._move(torch.device("cpu"))

    async def wake(self) -> None:
        if self._copied:
            self._move(self._device)
        self._awake = True
        self._barrier.consider()

    def _move(self, device: torch.device) -> None:
        torch.nn.Module.to(self._model, device)

    async def shutdown(self) -> None:
        self._runner.shutdown()

    def _finish_pass(self) -> None:
        # A pass whose episodes were cancelled may still be computing; its thread must not meet half-new weights.
        self._runner.submit(int).result()

    async def _reply(
        self, key: EpisodeKey, turn: int, prompt_ids: Sequence[int], sampling: Sampling, choices: Choices | None
    ) -> Reply:
        if not prompt_ids:
            raise EngineError("an empty prompt")
        if not self._awake:
            raise EngineError("the engine sleeps: wake it first")
        noise = generator(key.noise_seed(turn)).random(sampling.max_tokens).tolist()
        row = Row(list(prompt_ids), noise, sampling.temperature, choices)
        if row.most > self._pool.pages * PAGE:
            raise EngineRefused(
                f"a prompt of {len(row.prompt)} tokens and {row.most - len(row.prompt)} to say exceed the "
                f"{self._pool.pages * PAGE} that are kept: raise engine.cache_gb, or lower agent.max_context"
            )
        if choices is not None and choices.forced is not None:
            self._check_whole()
            self.drawn_tokens += len(choices.forced)
            return self._forced(choices.forced)
        request = _Request(key, row, asyncio.get_running_loop().create_future())
        self._waiting.append(request)
        self._barrier.consider()
        try:
            return await request.answer
        finally:
            # Only a cancelled request still waits: its reply would not be taken, and its place must not be counted.
            if request in self._waiting:
                self._waiting.remove(request)

    async def score(self, replies: Sequence[GivenReply], temperature: float = 1.0) -> list[list[float]]:
        if not self._awake:
            raise EngineError("the engine sleeps: wake it first")
        self._check_whole()
        most = self._decoder.pass_tokens
        # In the thread of the passes: the two never compute together, and a load waits for both.
        run = partial(scored, self._model, replies, temperature, most)
        return await asyncio.get_running_loop().run_in_executor(self._runner, run)

    def _check_whole(self) -> None:
        if not self._whole:
            raise EngineError("the weights are half new, since the last load failed: load again")

    # ---- when a round starts --------------------------------------------------------------------------------

    def consider(self) -> None:
        """Look, once everything that is ready has run, whether a round can start."""
        if self._running is None and (self._waiting or self._queue) and self._awake:
            asyncio.get_running_loop().call_soon(self._start_if_all_asked)

    def _start_if_all_asked(self) -> None:
        if self._running is not None or not self._awake:
            return
        if not self._reproducible:
            self.start()
        elif self._queue or self._barrier.all_asked:
            self._barrier.start()

    def start(self) -> None:
        """Compute what waits, unless that is being done."""
        if self._running is None and (self._waiting or self._queue):
            self._running = asyncio.get_running_loop().create_task(self._serve())
            # Not in _serve itself, which never begins if it is cancelled immediately.
            self._running.add_done_callback(self._served)

    def _served(self, task: asyncio.Task[None]) -> None:
        self._running = None
        while self._left:
            key = self._left.pop()
            if key not in self._open:
                self._caches.forget(key)
        self._barrier.consider()

    # ---- a round --------------------------------------------------------------------------------------------

    async def _serve(self) -> None:
        # An event loop that ended may have left a pass that is still being computed.
        await asyncio.get_running_loop().run_in_executor(self._runner, int)
        self._take()
        while (self._queue or self._rows) and self._awake:
            self._drop_cancelled()
            self._admit()
            if self._rows:
                await self._pass()
            elif self._queue:
                self._fail(list(self._queue), EngineError("there is no room for any reply, which is a fault of ours"))
            if not self._reproducible:
                await asyncio.sleep(0)  # episodes that got their replies may ask again before the next pass
                self._take()

    def _take(self) -> None:
        # Sorted, so that equal requests make equal rounds in any order of arrival.
        came = sorted(self._waiting, key=lambda request: (len(request.row.prompt), request.key))
        self._queue += came
        self._waiting = []

    def _drop_cancelled(self) -> None:
        for request in [request for request in self._rows if request.answer.done()]:
            self._rows.remove(request)
            self._caches.end(request.key, request.row, keep=False)
        self._queue = [request for request in self._queue if not request.answer.done()]

    def _admit(self) -> None:
        """Begin as many replies as there is room for."""
        asking, later = {request.key for request in self._queue}, list[_Request]()
        while self._queue and len(self._rows) < self._limit:
            request = self._queue.pop(0)
            asking.discard(request.key)
            state = self._caches.begin(request.key, request.row, asking, alone=not self._rows)
            if state == "begun":
                self._rows.append(request)
                continue
            asking.add(request.key)
            later.append(request)
            if state == "full":
                break
        self._queue = later + self._queue

    async def _pass(self) -> None:
        requests, version = list(self._rows), self.version
        rows = [request.row for request in requests]
        before = [row.computed for row in rows]
        try:
            self._check_whole()
            ended = await asyncio.get_running_loop().run_in_executor(self._runner, self._decoder.advance, rows)
        except Exception as error:
            if ran_out(error) and self._shrink():
                return
            self._fail(requests, error)
            return
        if self._rows != requests or version != self.version:
            return  # begun again during the pass
        self._caches.learnt(rows, before)
        over = {id(row) for row in ended}
        for request in [request for request in requests if id(request.row) in over]:
            self._answer(request, version)

    def _answer(self, request: _Request, version: int) -> None:
        row = request.row
        self._rows.remove(request)
        self.drawn_tokens += len(row.ids)
        self.read_tokens += len(row.prompt) - row.cached
        self._caches.end(request.key, row, keep=request.key in self._open)
        if not request.answer.done():
            finish = "stop" if row.ids[-1] in self._ends else "length"
            request.answer.set_result(Reply(row.ids, row.logprobs, finish, version, row.entropies))

    def _start_over(self) -> None:
        """Put what is being drawn back to where it was before its first token."""
        for request in self._rows:
            row = request.row
            row.begin(row.pages.tolist(), row.cached)
            self._caches.end(request.key, row, keep=True)
        self._queue, self._rows = self._rows + self._queue, []

    def _shrink(self) -> bool:
        """Memory ran out: begin again with fewer rows, or with shorter pieces of prompts. False if there is no less."""
        self._out_of_memory += 1
        count = len(self._rows)
        self._start_over()
        if count > 1:
            self.batch_limit = -(-count // 2)
        elif not self._decoder.read_less():
            return False
        self._decoder.forget_recorded()
        if self._device.type == "cuda":
            torch.cuda.empty_cache()
        return True

    def _fail(self, requests: list[_Request], error: Exception) -> None:
        text = str(error) if isinstance(error, EngineError) else f"{type(error).__name__}: {error}"
        for request in requests:
            if request in self._rows:
                self._rows.remove(request)
                self._caches.end(request.key, request.row, keep=False)
            elif request in self._queue:
                self._queue.remove(request)
            if not request.answer.done():
                failure = EngineError(text)
                failure.__cause__ = error
                request.answer.set_exception(failure)
        if not self._rows:
            # What was computed may hold NaN, which another's weight of 0 would not take away.
            self._caches.clear()
            self._pool.let_go()
