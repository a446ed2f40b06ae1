"""Playing an environment to find out how it behaves: used by the conformance checks."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from manyturn.envs.contract.env.text_env import TextEnv
from manyturn.envs.contract.keys import generator
from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.contract.tasks.task_faults import looked_at
from manyturn.envs.hosting.handle.deadline import beat
from manyturn.envs.hosting.handle.env_handle import Answer, EnvHandle

ODD_ACTIONS: Mapping[str, str] = {
    "empty": "",
    "blank": " \t\n",
    "accents": "prends la clé à côté",
    "emoji": "🙂🏳️‍🌈 漢字",
    "lone surrogate": "\ud83d",
    "control characters": "\x00\x1b[31m\r",
    "markup": "<action>{}%s</action>\\",
    "number": "9" * 400,
    "100 kB": "take lamp " * 10_000,
}
LONGEST = 200  # turns; an environment without a limit must not hold up a check
_SLOW_SECONDS = 0.3  # of a turn, from which on less is played
_EPISODE_SECONDS = 10.0  # for one episode of a policy that need not reach its end
_POLICY_SECONDS = 20.0  # for the episodes of one policy on one split

Policy = Callable[[EnvHandle, Answer, np.random.Generator], str]


@dataclass(frozen=True)
class ProbedEpisode:
    """One episode: ``steps[0]`` is the reset, ``steps[k]`` the answer to ``actions[k - 1]``."""

    task: Task
    seed: int
    actions: list[str]
    steps: list[Answer]
    answer: str | None

    @property
    def success(self) -> bool | None:
        return self.steps[-1].success


def by_expert(handle: EnvHandle, step: Answer, rng: np.random.Generator) -> str:
    """The expert's action."""
    return handle.expert()


def by_random_policy(handle: EnvHandle, step: Answer, rng: np.random.Generator) -> str:
    """An admissible action, or random text where none are listed."""
    if step.admissible:
        return step.admissible[int(rng.integers(len(step.admissible)))]
    letters = rng.choice(list("abcdefghijklmnopqrstuvwxyz "), size=int(rng.integers(1, 12)))
    return "".join(letters)


def by_whim(handle: EnvHandle, step: Answer, rng: np.random.Generator) -> str:
    """Now the expert's, now an admissible, now a meaningless action: reaches more states than any of them."""
    draw = rng.random()
    if draw < 0.15:
        return "xyzzy"
    return by_expert(handle, step, rng) if handle.has_expert and draw < 0.6 else by_random_policy(handle, step, rng)


@dataclass
class Subject:
    """The environment under examination.

    Args:
        name: id or ``FILE.py:Class``.
        kwargs: passed to the constructor.
        samples: episodes for each split and policy.
        seed: decides which tasks and actions.
        timeout: seconds that one answer may take in another process.

    Attributes:
        handles: all instances that were made.
        is_excluded: whether something of its own was found outside of its spaces.
        is_random: whether the same actions were found to give something else.
    """

    name: str
    kwargs: Mapping[str, Any]
    samples: int
    seed: int
    timeout: float = 60.0
    handles: list[EnvHandle] = field(default_factory=list)
    is_excluded: bool = False
    is_random: bool = False
    _many: dict[str, list[Task]] = field(default_factory=dict)

    def fresh(self) -> EnvHandle:
        """A new instance, closed by ``close``."""
        handle = EnvHandle(self.name, self.kwargs)
        self.handles.append(handle)
        return handle

    @cached_property
    def handle(self) -> EnvHandle:
        """An instance to ask about tasks and abilities."""
        return self.fresh()

    @property
    def text_env(self) -> TextEnv | None:
        return text_env_of(self.handle)

    def some_tasks(self, count: int, split: str) -> list[Task]:
        """Tasks drawn from a split, the same ones each time."""
        tasks = self.handle.tasks(split)
        rng = generator("check", self.seed, split)
        return [tasks[int(i)] for i in rng.choice(len(tasks), size=min(count, len(tasks)), replace=False)]

    def a_few_tasks(self) -> list[Task]:
        """At most two tasks of each split, one where turns are slow."""
        return [task for split in self.handle.splits for task in self.some_tasks(1 if self.is_slow else 2, split)]

    @cached_property
    def turn_seconds(self) -> float:
        """Seconds of an answer after the first one, which may load data that all episodes share."""
        handle, [task, *_] = self.fresh(), [task for split in self.handle.splits for task in self.some_tasks(1, split)]
        step = handle.reset(task, self.seed)
        began = time.monotonic()
        handle.step(by_random_policy(handle, step, generator("pace", self.seed)))
        return time.monotonic() - began

    @property
    def is_slow(self) -> bool:
        return self.turn_seconds > _SLOW_SECONDS

    @property
    def most_turns(self) -> int:
        """Turns of an episode whose end is not needed."""
        return max(2, min(LONGEST, int(_EPISODE_SECONDS / self.turn_seconds))) if self.is_slow else LONGEST

    def shortened(self, count: int) -> str:
        """Remark on episodes that were fewer than requested because turns are slow."""
        requested = sum(min(self.samples, len(self.handle.tasks(split))) for split in self.handle.splits)
        return f"{count} of {requested} episodes, since turns are slow" if count < requested else ""

    def many_tasks(self, split: str) -> list[Task]:
        """The tasks of a split, or many of them."""
        if split not in self._many:
            self._many[split] = looked_at(self.handle.tasks(split), split, self.seed, beat)
        return self._many[split]

    def play(self, task: Task, policy: Policy, handle: EnvHandle | None = None) -> ProbedEpisode:
        """One episode, to its end or to a length that is not needed."""
        handle = handle or self.handle
        rng = generator("play", self.seed, task.id, policy.__name__)
        seed = int(rng.integers(2**31))
        steps, actions = [handle.reset(task, seed)], list[str]()
        env = text_env_of(handle)
        answer = env.answer() if env else None
        longest = LONGEST if policy is by_expert else self.most_turns
        while not steps[-1].ended and len(actions) < longest:
            actions.append(policy(handle, steps[-1], rng))
            steps.append(handle.step(actions[-1]))
        return ProbedEpisode(task, seed, actions, steps, answer)

    def replay(self, played: ProbedEpisode, handle: EnvHandle, turns: int | None = None) -> list[Answer]:
        """The steps that the same task, seed and actions bring in another instance."""
        return [handle.reset(played.task, played.seed), *map(handle.step, played.actions[:turns])]

    @cached_property
    def expert_episodes(self) -> dict[str, list[ProbedEpisode]]:
        """Split -> episodes of the expert; empty without one."""
        if not self.handle.has_expert:
            return {}
        return {split: self._episodes(split, by_expert) for split in self.handle.splits}

    @cached_property
    def random_episodes(self) -> dict[str, list[ProbedEpisode]]:
        """Split -> episodes of the random policy."""
        return {split: self._episodes(split, by_random_policy) for split in self.handle.splits}

    def _episodes(self, split: str, policy: Policy) -> list[ProbedEpisode]:
        """As many as were asked for, or as the time allows, but one."""
        stop, episodes = time.monotonic() + _POLICY_SECONDS, list[ProbedEpisode]()
        for task in self.some_tasks(self.samples, split):
            episodes.append(self.play(task, policy))
            if self.is_slow and time.monotonic() > stop:
                break
        return episodes

    @cached_property
    def whim_episodes(self) -> list[ProbedEpisode]:
        return [self.play(task, by_whim) for task in self.a_few_tasks()]

    def all_episodes(self) -> Iterator[ProbedEpisode]:
        """Every episode played so far for the checks."""
        for episodes in (*self.expert_episodes.values(), *self.random_episodes.values(), self.whim_episodes):
            yield from episodes

    def close(self) -> None:
        for handle in self.handles:
            handle.close()


def text_env_of(handle: EnvHandle) -> TextEnv | None:
    """The ``TextEnv`` inside, if it is one."""
    bare = handle.env.unwrapped
    return bare if isinstance(bare, TextEnv) else None
