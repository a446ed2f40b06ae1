"""A trivial text environment in two shapes, and Gymnasium's vector environments of it.

``Corridor`` is what this project runs. ``PlainCorridor`` says the same and nothing else: no infos, no anchor, no
reward parts, so that the peers are measured at their best. ``CorridorOfText`` is ours with the space that they need.
"""

import string
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
from gymnasium import spaces
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv, VectorEnv

import manyturn as mt

TURNS, TASKS = 20, 100_000
ACTION = "go on"
_LONGEST = 200
_TEXT = partial(spaces.Text, _LONGEST, charset=string.ascii_letters + string.digits + " .,:")


def view(turn: int) -> str:
    """About 170 characters."""
    return (
        f"Turn {turn} of {TURNS}. You stand in a long corridor with grey walls. A lamp flickers above you, and a door "
        "stands ajar somewhere far ahead. Your last step led nowhere new."
    )


class Corridor(mt.TextEnv):
    """Walks on until the turns are used up."""

    instructions = f"Say: {ACTION}."
    max_turns = TURNS

    def tasks(self, split):
        return mt.GeneratedTasks(lambda i: mt.Task(f"{split}/{i}", split, {"number": i}), TASKS, f"{split}/")

    def begin(self, task, rng):
        return view(0)

    def respond(self, action):
        return self.go_on(view(self.turn + 1))


class CorridorOfText(Corridor):
    """With Gymnasium's own space of text, which names each character."""

    def __init__(self):
        super().__init__()
        self.observation_space, self.action_space = _TEXT(), _TEXT()


class PlainCorridor(gymnasium.Env[str, str]):
    """The least that a ``gymnasium.Env`` can be."""

    def __init__(self):
        self.observation_space, self.action_space = _TEXT(), _TEXT()
        self._turn = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._turn = 0
        return view(0), {}

    def step(self, action):
        self._turn += 1
        return view(self._turn), 0.0, False, self._turn >= TURNS, {}


def plain_loop(count: int, seconds: float) -> dict[str, float]:
    """The ceiling: ``count`` plain environments, one after the other, nothing kept."""
    began = time.perf_counter()
    envs = [PlainCorridor() for _ in range(count)]

    def reset() -> None:
        for seed, env in enumerate(envs):
            env.reset(seed=seed)

    def step() -> None:
        for env in envs:
            env.step(ACTION)

    reset()
    return {"start_s": time.perf_counter() - began, "steps_per_s": stepping(count, seconds, reset, step)}


def vector(make: Callable[[], VectorEnv], seconds: float) -> dict[str, float]:
    """A vector environment: start and first reset, then whole episodes in lockstep."""
    before = memory_mb()
    began = time.perf_counter()
    envs = make()
    try:
        envs.reset(seed=0)
        started = time.perf_counter() - began
        actions = [ACTION] * envs.num_envs
        # Each episode is reset by hand, so that no call counts as a step that was a reset.
        rate = stepping(envs.num_envs, seconds, lambda: envs.reset(seed=0), lambda: envs.step(actions))
        return {"start_s": started, "steps_per_s": rate, "memory_mb": memory_mb() - before}
    finally:
        envs.close()


def vector_makers(count: int) -> dict[str, Callable[[], VectorEnv]]:
    """Label -> a vector environment of ``count`` environments."""
    plain, ours = [PlainCorridor] * count, [CorridorOfText] * count
    return {
        "SyncVectorEnv, plain": lambda: SyncVectorEnv(plain),
        "SyncVectorEnv, TextEnv": lambda: SyncVectorEnv(ours),
        "AsyncVectorEnv, plain, pipes": lambda: AsyncVectorEnv(plain, shared_memory=False),
        "AsyncVectorEnv, plain, shared memory": lambda: AsyncVectorEnv(plain, shared_memory=True),
    }


def stepping(count: int, seconds: float, reset: Callable[[], Any], step: Callable[[], Any]) -> float:
    """Steps a second of whole episodes that last ``seconds`` or one episode; resets are outside the clock."""
    steps, spent = 0, 0.0
    while spent < seconds:
        reset()
        began = time.perf_counter()
        for _ in range(TURNS):
            step()
        spent += time.perf_counter() - began
        steps += TURNS * count
    return steps / spent


def memory_mb() -> float:
    """Memory of this process and its children in MB; a page that several share is counted once."""
    own = Path("/proc/self/task")
    children = [pid for task in own.iterdir() for pid in (task / "children").read_text().split()]
    return sum(_proportional_kb(pid) for pid in ("self", *children)) * 1024 / 1e6


def _proportional_kb(pid: str) -> int:
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1])
    return 0
