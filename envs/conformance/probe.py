"""Playing an environment to find out how it behaves: used by the conformance checks."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from manyturn.envs.contract.keys import generator
from manyturn.envs.contract.task import Task
from manyturn.envs.contract.text_env import TextEnv
from manyturn.envs.hosting.deadline import beat
from manyturn.envs.hosting.host import Answer, Host

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
_LONGEST = 200  # turns; an environment without a limit must not hold up a check
_MANY = 2_000  # tasks of a split that are looked at
_SECONDS = 3.0  # for drawing them

Policy = Callable[[Host, Answer, np.random.Generator], str]


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


def by_expert(host: Host, step: Answer, rng: np.random.Generator) -> str:
    """The expert's action."""
    return host.expert()


def by_random_policy(host: Host, step: Answer, rng: np.random.Generator) -> str:
    """An admissible action, or random text where none are listed."""
    if step.admissible:
        return step.admissible[int(rng.integers(len(step.admissible)))]
    letters = rng.choice(list("abcdefghijklmnopqrstuvwxyz "), size=int(rng.integers(1, 12)))
    return "".join(letters)


def by_whim(host: Host, step: Answer, rng: np.random.Generator) -> str:
    """Now the expert's, now an admissible, now a meaningless action: reaches more states than any of them."""
    draw = rng.random()
    if draw < 0.15:
        return "xyzzy"
    return by_expert(host, step, rng) if host.has_expert and draw < 0.6 else by_random_policy(host, step, rng)


@dataclass
class Subject:
    """The environment under examination.

    Args:
        name: id or ``FILE.py:Class``.
        kwargs: passed to the constructor.
        samples: episodes for each split and policy.
        seed: decides which tasks and actions.
        timeout: seconds that one answer may take in another process.
    """

    name: str
    kwargs: Mapping[str, Any]
    samples: int
    seed: int
    timeout: float = 60.0
    hosts: list[Host] = field(default_factory=list)
    _many: dict[str, list[Task]] = field(default_factory=dict)

    def fresh(self) -> Host:
        """A new instance, closed by ``close``."""
        host = Host(self.name, self.kwargs)
        self.hosts.append(host)
        return host

    @cached_property
    def host(self) -> Host:
        """An instance to ask about tasks and abilities."""
        return self.fresh()

    @property
    def text_env(self) -> TextEnv | None:
        return text_env_of(self.host)

    def some_tasks(self, count: int, split: str) -> list[Task]:
        """Tasks drawn from a split, the same ones each time."""
        tasks = self.host.tasks(split)
        rng = generator("check", self.seed, split)
        return [tasks[int(i)] for i in rng.choice(len(tasks), size=min(count, len(tasks)), replace=False)]

    def a_few_tasks(self) -> list[Task]:
        """At most two tasks of each split."""
        return [task for split in self.host.splits for task in self.some_tasks(2, split)]

    def many_tasks(self, split: str) -> list[Task]:
        """Up to 2,000 tasks: the first ones, where generators that ignore the split repeat themselves, and others."""
        if split in self._many:
            return self._many[split]
        tasks = self.host.tasks(split)
        others = generator("sample", self.seed, split).integers(0, max(1, len(tasks)), _MANY // 2)
        numbers = dict.fromkeys([*range(min(len(tasks), _MANY // 2)), *map(int, others)]) if len(tasks) else {}
        stop, found = time.monotonic() + _SECONDS, list[Task]()
        for number in numbers:
            beat()
            found.append(tasks[number])
            if time.monotonic() > stop:
                break
        self._many[split] = found
        return found

    def play(self, task: Task, policy: Policy, host: Host | None = None) -> ProbedEpisode:
        """One episode, to its end or to a length that is not needed."""
        host = host or self.host
        rng = generator("play", self.seed, task.id, policy.__name__)
        seed = int(rng.integers(2**31))
        steps, actions = [host.reset(task, seed)], list[str]()
        env = text_env_of(host)
        answer = env.answer() if env else None
        while not steps[-1].ended and len(actions) < _LONGEST:
            actions.append(policy(host, steps[-1], rng))
            steps.append(host.step(actions[-1]))
        return ProbedEpisode(task, seed, actions, steps, answer)

    def replay(self, played: ProbedEpisode, host: Host, turns: int | None = None) -> list[Answer]:
        """The steps that the same task, seed and actions bring in another instance."""
        return [host.reset(played.task, played.seed), *map(host.step, played.actions[:turns])]

    @cached_property
    def expert_episodes(self) -> dict[str, list[ProbedEpisode]]:
        """Split -> episodes of the expert; empty without one."""
        if not self.host.has_expert:
            return {}
        return {s: [self.play(t, by_expert) for t in self.some_tasks(self.samples, s)] for s in self.host.splits}

    @cached_property
    def random_episodes(self) -> dict[str, list[ProbedEpisode]]:
        """Split -> episodes of the random policy."""
        return {s: [self.play(t, by_random_policy) for t in self.some_tasks(self.samples, s)] for s in self.host.splits}

    @cached_property
    def whim_episodes(self) -> list[ProbedEpisode]:
        return [self.play(task, by_whim) for task in self.a_few_tasks()]

    def all_episodes(self) -> Iterator[ProbedEpisode]:
        """Every episode played so far for the checks."""
        for episodes in (*self.expert_episodes.values(), *self.random_episodes.values(), self.whim_episodes):
            yield from episodes

    def close(self) -> None:
        for host in self.hosts:
            host.close()


def text_env_of(host: Host) -> TextEnv | None:
    """The ``TextEnv`` inside, if it is one."""
    bare = host.env.unwrapped
    return bare if isinstance(bare, TextEnv) else None
