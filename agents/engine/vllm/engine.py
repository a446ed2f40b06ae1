"""Inference by vLLM next to the learner: tokens in, tokens and log-probabilities out.

Requests are in flight as soon as an episode asks; there is no barrier. vLLM starts when it is first needed, with the
weights that were loaded last, and again after its process died. It shares nothing with the learner but a folder, and
after each transfer the checksum of what it read must be that of what was written.
"""

import asyncio
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from manyturn.agents.engine.engine import EngineError
from manyturn.agents.engine.vllm.base_engine import CopyingEngine
from manyturn.agents.engine.vllm.process import Process
from manyturn.agents.engine.vllm.reply_request import Drawer
from manyturn.agents.tokens.episode_key import EpisodeKey

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from manyturn.agents.engine.card.card_plan import CardPlan
    from manyturn.agents.engine.vllm.options import VllmConfig


class VllmEngine(CopyingEngine):
    """Draws replies with vLLM; see ``CopyingEngine``.

    Asleep, vLLM forgets weights that the learner is about to replace; those below adapters wait in the host's memory.

    Args:
        plan: of the card that it shares with the learner; None on a CPU.
    """

    def __init__(
        self,
        model: "PreTrainedModel",
        end_ids: frozenset[int],
        config: "VllmConfig",
        plan: "CardPlan | None" = None,
    ):
        super().__init__(model, end_ids, config, config.precision(on_gpu=plan is not None))
        self._plan = plan
        self._start = partial(Process, self._folder.path, config, self.precision, self._rank, plan)
        self._process: Process | None = None
        self._is_empty = False  # vLLM has forgotten its weights
        self._starting = asyncio.Lock()
        self._ending: list[asyncio.Future[None]] = []

    async def _drawer(self, key: EpisodeKey) -> Drawer:
        return await self._running()

    def _failed(self, drawer: Drawer, error: Exception) -> None:
        if self._process is drawer:
            self._living()

    async def _before_load(self) -> None:
        if (process := self._living()) is not None:
            await (process.forget() if self._awake else process.wake_weights())

    @property
    def wake_bytes(self) -> float:
        if self._plan is None:
            return 0.0
        return self._plan.start_bytes if self._living() is None else 0.0 if self._awake else self._plan.wake_bytes

    @property
    def asleep_bytes(self) -> float:
        return 0.0 if self._plan is None else self._plan.asleep

    async def _after_load(self, old: Path | None) -> None:
        if self._process is None:
            return
        if self._folder.adapters is None:
            await self._reload(self._process)
        else:
            await self._process.take_adapters(self._folder.adapters, old)

    def _load_failed(self) -> None:
        # What draws next starts from the folder, which holds one version.
        self._drop()

    async def sleep(self) -> None:
        if self._awake and (process := self._living()) is not None:
            keeps = self._folder.adapters is not None
            await process.sleep(keeps_weights=keeps)
            self._is_empty = not keeps
        self._awake = False

    async def wake(self) -> None:
        if not self._awake and (process := self._living()) is not None:
            if self._is_empty:
                await process.wake_weights()
                await self._reload(process)
            await process.wake()
        await self._running()
        self._awake = True

    async def shutdown(self) -> None:
        self._drop()
        await self._ended()
        self._folder.remove()

    # ---- vLLM's processes ---------------------------------------------------------------------------------------

    def _living(self) -> Process | None:
        """vLLM, if it runs; one that died is started again when it is needed."""
        if self._process is not None and self._process.is_dead:
            self._drop()
        return self._process

    async def _running(self) -> Process:
        """vLLM, which is started if it does not run."""
        async with self._starting:
            if self._process is None:
                await self._ended()
                self._process = await self._started()
            return self._process

    async def _started(self) -> Process:
        # In a thread, for it takes half a minute; a process that is no longer waited for ends when it has started.
        coming = asyncio.ensure_future(asyncio.to_thread(self._start))
        try:
            process = await asyncio.shield(coming)
        except asyncio.CancelledError:
            coming.add_done_callback(lambda done: done.exception() or done.result().end())
            raise
        except Exception as error:
            raise EngineError(f"vLLM does not start: {type(error).__name__}: {error}") from error
        try:
            self._check(await process.reload(self._folder.file))  # what it started with is held to the checksum too
            if self._folder.adapters is not None:
                await process.take_adapters(self._folder.adapters, None)
        except BaseException:
            self._end(process)
            raise
        return process

    async def _reload(self, process: Process) -> None:
        self._check(await process.reload(self._folder.file))
        self._is_empty = False

    def _drop(self) -> None:
        """Have the processes end, whatever state they are in."""
        if self._process is not None:
            self._end(self._process)
        self._process, self._is_empty = None, False

    def _end(self, process: Process) -> None:
        self._ending.append(asyncio.get_running_loop().run_in_executor(None, process.end))

    async def _ended(self) -> None:
        while self._ending:
            await self._ending.pop()
