"""Inference with a transformers model in this process, on CPU or GPU.

Many episodes are computed in one batch; each keeps its keys and values from turn to turn, so a turn computes only its
new tokens. Rows are independent: sampling noise comes from the episode's key, so what is drawn does not depend on
which rows share a batch. A batch starts when every open episode has asked, which makes its composition a function of
the episodes alone; ``patience`` trades that for not waiting on slow environments.
"""

import asyncio
from collections.abc import Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import torch
from transformers import PreTrainedModel

from manyturn.agents.batch_barrier import BatchBarrier
from manyturn.agents.batch_decoder import BatchDecoder, Drawn, Past, Row
from manyturn.agents.engine import Capabilities, Engine, EngineError, Reply, Sampling
from manyturn.agents.episode_key import EpisodeKey
from manyturn.agents.weights import Weights
from manyturn.envs.contract.keys import generator


@dataclass(slots=True, eq=False)
class _Request:
    key: EpisodeKey
    turn: int
    prompt: list[int]
    sampling: Sampling
    answer: asyncio.Future[Reply]


class TransformersEngine(Engine):
    """Draws replies from a causal language model.

    Args:
        model: any transformers causal language model with full attention and a plain output head.
        end_ids: tokens that end a reply.
        max_batch: rows computed together.
        patience: seconds to wait for open episodes that have not asked; None waits for all (reproducible to the bit).
        barrier: of the engines that play the same episodes; None: it plays alone.
        copied: whether nothing else uses the model, so that it can leave the device while the engine sleeps.

    Attributes:
        drawn_tokens, read_tokens: tokens drawn, and prompt tokens computed, since the engine was made.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        end_ids: frozenset[int],
        max_batch: int = 256,
        patience: float | None = None,
        barrier: BatchBarrier | None = None,
        copied: bool = False,
    ):
        self._model, self._device, self._copied = model, model.device, copied
        self.version, self.vocabulary = 0, model.config.get_text_config().vocab_size
        self.capabilities = Capabilities(keeps_bits=patience is None, entropy=True, lora=True)
        self._whole = True  # whether the weights are those of one version
        self._awake = True
        self._decoder, self._ends = BatchDecoder(model, end_ids), end_ids
        self._max_batch, self._patience = max_batch, patience
        self._barrier = barrier or BatchBarrier()
        self._barrier.join(self)
        self._open: set[EpisodeKey] = set()
        self._waiting: list[_Request] = []
        self._past: dict[EpisodeKey, Past] = {}
        self._runner = ThreadPoolExecutor(1, thread_name_prefix="engine")
        self._running: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self.drawn_tokens = self.read_tokens = 0

    @property
    def episodes(self) -> Set[EpisodeKey]:
        """Those that are open."""
        return self._open

    @property
    def asking(self) -> int:
        """Requests that no batch has taken yet."""
        return len(self._waiting)

    @property
    def kept(self) -> Set[EpisodeKey]:
        """Episodes of which keys and values are kept."""
        return self._past.keys()

    def open(self, key: EpisodeKey) -> None:
        if key in self._open:
            raise ValueError(f"episode {key} is open already: two episodes need two keys")
        self._open.add(key)

    def close(self, key: EpisodeKey) -> None:
        self._open.discard(key)
        self._past.pop(key, None)
        self._barrier.consider()

    # Nothing in load, sleep and wake is awaited: no batch can begin, and no cancellation can come, in their middle.

    async def load(self, weights: Weights, version: int) -> None:
        self._finish_batch()
        self._whole = False
        self._past.clear()
        if weights.module is not self._model:
            self._move(self._device)
            self._copy(weights)
            if not self._awake:
                self._move(torch.device("cpu"))
        self.version, self._whole = version, True

    def _copy(self, weights: Weights) -> None:
        missing = dict(self._model.named_parameters())
        with torch.no_grad():
            for name, tensor in weights.tensors():
                mine = missing.pop(name, None)
                if mine is None or mine.shape != tensor.shape:
                    raise EngineError(f"the new weights are of another model: {name} of shape {tuple(tensor.shape)}")
                mine.copy_(tensor)
        if missing:
            raise EngineError(f"the new weights are incomplete: there is no {next(iter(missing))}")

    async def sleep(self) -> None:
        self._finish_batch()
        self._awake = False
        self._past.clear()
        if self._copied:
            self._move(torch.device("cpu"))

    async def wake(self) -> None:
        if self._copied:
            self._move(self._device)
        self._awake = True

    def _move(self, device: torch.device) -> None:
        torch.nn.Module.to(self._model, device)

    async def shutdown(self) -> None:
        self._runner.shutdown()

    def _finish_batch(self) -> None:
        # A batch whose episodes were cancelled may still be computing; its thread must not meet half-new weights.
        self._runner.submit(int).result()

    async def generate(self, key: EpisodeKey, turn: int, prompt_ids: Sequence[int], sampling: Sampling) -> Reply:
        if not prompt_ids:
            raise EngineError("an empty prompt")
        if not self._awake:
            raise EngineError("the engine sleeps: wake it first")
        request = _Request(key, turn, list(prompt_ids), sampling, asyncio.get_running_loop().create_future())
        self._waiting.append(request)
        self._barrier.consider()
        try:
            return await request.answer
        finally:
            # Only a cancelled request still waits: its reply would not be taken, and its place must not be counted.
            if request in self._waiting:
                self._waiting.remove(request)
            if not self._waiting:
                self._stop_timer()

    # ---- when a batch starts --------------------------------------------------------------------------------

    def consider(self) -> None:
        """Look, once everything that is ready has run, whether a batch can start."""
        if self._waiting and self._running is None:
            asyncio.get_running_loop().call_soon(self._start_if_all_asked)

    def _start_if_all_asked(self) -> None:
        if not self._waiting or self._running is not None:
            return
        if self._barrier.all_asked:
            self._barrier.start()
        elif self._patience is not None and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._patience, self.start)

    def start(self) -> None:
        """Compute what waits, unless a batch is being computed."""
        self._stop_timer()
        if self._waiting and self._running is None:
            self._running = asyncio.get_running_loop().create_task(self._serve())
            # Not in _serve itself, which never begins if it is cancelled immediately.
            self._running.add_done_callback(self._served)

    def _served(self, task: asyncio.Task[None]) -> None:
        self._running = None
        self._barrier.consider()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # ---- a batch --------------------------------------------------------------------------------------------

    async def _serve(self) -> None:
        # Sorted, so that equal requests make equal batches in any order of arrival.
        requests = sorted(self._waiting, key=lambda request: (len(request.prompt), request.key))
        self._waiting = []
        loop = asyncio.get_running_loop()
        for first in range(0, len(requests), self._max_batch):
            part = requests[first : first + self._max_batch]
            version = self.version
            try:
                rows = [self._row(request) for request in part]
                if not self._whole:
                    raise EngineError("the weights are half new, since the last load failed: load again")
                drawn = await loop.run_in_executor(self._runner, self._decoder.draw, rows)
            except Exception as error:
                self._fail(part, error)
                continue
            for request, row, reply in zip(part, rows, drawn, strict=True):
                self._answer(request, row, reply, version)

    def _row(self, request: _Request) -> Row:
        noise = generator(request.key.noise_seed(request.turn)).random(request.sampling.max_tokens)
        return Row(request.prompt, self._past.get(request.key), noise.tolist(), request.sampling.temperature)

    def _answer(self, request: _Request, row: Row, drawn: Drawn, version: int) -> None:
        self.drawn_tokens += len(drawn.ids)
        self.read_tokens += len(row.prompt) - (row.past.shared(row.prompt) if row.past else 0)
        if request.answer.done():
            return  # cancelled meanwhile
        if request.key in self._open and version == self.version:
            self._past[request.key] = drawn.past
        finish = "stop" if drawn.ids[-1] in self._ends else "length"
        request.answer.set_result(Reply(drawn.ids, drawn.logprobs, finish, version, drawn.entropies))

    def _fail(self, part: list[_Request], error: Exception) -> None:
        text = str(error) if isinstance(error, EngineError) else f"{type(error).__name__}: {error}"
        for request in part:
            if not request.answer.done():
                failure = EngineError(text)
                failure.__cause__ = error
                request.answer.set_exception(failure)
