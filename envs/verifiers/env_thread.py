"""An environment of verifiers that runs in an event loop of its own, in a thread, and conversations with it."""

import asyncio
import json
import threading
from collections.abc import Coroutine
from functools import cache
from itertools import islice
from typing import Any, TypeVar

import verifiers.v1 as vf  # pyright: ignore[reportMissingImports]
from verifiers.v1.configs.agent import agent_config_fields  # pyright: ignore[reportMissingImports]
from verifiers.v1.trace import TraceTask  # pyright: ignore[reportMissingImports]

from manyturn.envs.contract.registration.env_registry import UnknownEnv
from manyturn.envs.verifiers.taskset_loader import environment, task_refusal
from manyturn.envs.verifiers.text_agent import TextAgent, TextAgents

T = TypeVar("T")


class HostedEnv:
    """A package's environment with its tasks, of which all episodes of this process play the same.

    Args:
        package: whose it is.
        taskset, options: of the configuration.
        size: how many tasks a taskset without end has.

    Attributes:
        tasks: those of its taskset, in their order.
    """

    def __init__(self, package: str, taskset: dict[str, Any], options: dict[str, Any], size: int):
        self._env = environment(package, taskset, options)
        whole = self._env.taskset
        self.tasks: list[Any] = list(whole if whole.bounded else islice(whole, size))
        if self.tasks and (why := task_refusal(self.tasks[0])):
            raise UnknownEnv(f"verifiers:{package} is not played: {why}")
        [(self._role, self._config)] = agent_config_fields(self._env.config).items()
        self._lock, self._users = threading.Lock(), 0

    def enter(self) -> None:
        """Begin to use it."""
        with self._lock:
            if not self._users:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
                self._thread.start()
                try:
                    self.wait(self._env.start())
                except BaseException:
                    self._end()
                    raise
            self._users += 1

    def leave(self) -> None:
        """Use it no longer; the last one who leaves ends it."""
        with self._lock:
            self._users -= 1
            if self._users:
                return
            try:
                self.wait(self._env.stop())
            finally:
                self._end()

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Run work in its loop, and return its result."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def play(self, task: Any, ask: Any) -> Any:
        """One episode of a task; gives the trace, with its rewards."""
        traces: list[Any] = []
        agents = TextAgents(TextAgent(self._role, self._config, ask, traces))
        await self._env.setup(agents)
        await self._env.run(task, agents)
        if len(traces) != 1:
            raise ValueError("the environment ended without a conversation")
        about = TraceTask(type=type(task).__name__, data=task.data, key=task.key, hash=task.hash)
        await self._env.finalize(task, vf.Episode(task=about, traces=traces, ok=True))
        return traces[0]


@cache
def hosted(package: str, taskset: str, options: str, size: int) -> HostedEnv:
    """The one of this process; ``taskset`` and ``options`` are JSON."""
    return HostedEnv(package, json.loads(taskset), json.loads(options), size)


class HostedEpisode:
    """An episode whose environment runs until it needs a reply, and then waits for one."""

    def __init__(self, env: HostedEnv, task: Any):
        self._env, self._play = env, env.play(task, self._ask)
        self._work: asyncio.Task[Any] | None = None

    def say(self, reply: str | None) -> Any:
        """Give a reply, None at first and where no turns are left; gives the next text, or at the end the trace."""
        return self._env.wait(self._go_on(reply))

    def abandon(self) -> None:
        """Leave it where it is."""
        self._env.wait(self._end())

    async def _go_on(self, reply: str | None) -> Any:
        self._question = asyncio.get_running_loop().create_future()
        if self._work is None:
            self._work = asyncio.create_task(self._play)
        else:
            self._reply.set_result(reply)
        await asyncio.wait({self._work, self._question}, return_when=asyncio.FIRST_COMPLETED)
        return self._work.result() if self._work.done() else self._question.result()

    async def _ask(self, text: str) -> str | None:
        self._reply = asyncio.get_running_loop().create_future()
        self._question.set_result(text)
        return await self._reply

    async def _end(self) -> None:
        if self._work is None:
            self._play.close()
        else:
            self._work.cancel()
            await asyncio.gather(self._work, return_exceptions=True)
