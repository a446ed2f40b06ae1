"""Play of an environment to find out how it behaves: used by the conformance checks.

An error ends an episode, and its turns so far are looked at like any others. The error waits for its own check.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from gymnasium.error import ResetNeeded

from manyturn.envs.conformance.root_causes import TURNS, Causes
from manyturn.envs.contract.env.text_env import TextEnv
from manyturn.envs.contract.random_keys import generator
from manyturn.envs.contract.tasks.duplicate_tasks import looked_at
from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.hosting.handle.deadline import beat
from manyturn.envs.hosting.handle.env_handle import Answer, EnvError, EnvHandle

NONSENSE = "xyzzy"
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
    """One episode: ``steps[0]`` is the reset, ``steps[k]`` the answer to ``actions[k - 1]``.

    Attributes:
        instructions: as they stood when the episode began.
        error: what ended it before its time; None if nothing did. What raised is not among ``actions``.
    """

    task: Task
    seed: int
    actions: list[str]
    steps: list[Answer]
    instructions: str = ""
    error: Exception | None = None

    @property
    def answer(self) -> str | None:
        return self.steps[0].answer

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
        return NONSENSE
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
        causes: of the errors that were met.
        failed: the checks that have failed.
        is_changing: whether one id was seen to name two problems.
        unclosed: Python's warnings of files and processes that were forgotten open.
        varies: the check that saw the same actions give something else; empty if none did.
    """

    name: str
    kwargs: Mapping[str, Any]
    samples: int
    seed: int
    timeout: float = 60.0
    handles: list[EnvHandle] = field(default_factory=list)
    causes: Causes = field(default_factory=Causes)
    failed: set[str] = field(default_factory=set)
    is_changing: bool = False
    unclosed: list[str] = field(default_factory=list)
    varies: str = ""
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

    @cached_property
    def splits(self) -> tuple[str, ...]:
        """Splits that list tasks; an error belongs to the check of the tasks."""
        listed = list[str]()
        for split in self.handle.splits:
            try:
                listed += [split] if len(self.handle.tasks(split)) else []
            except (Exception, SystemExit) as error:
                self.causes.note(error, "tasks")
        return tuple(listed)

    def some_tasks(self, count: int, split: str) -> list[Task]:
        """Tasks drawn from a split, the same ones each time."""
        tasks = self.handle.tasks(split)
        rng = generator("check", self.seed, split)
        return [tasks[int(i)] for i in rng.choice(len(tasks), size=min(count, len(tasks)), replace=False)]

    def a_few_tasks(self) -> list[Task]:
        """At most two tasks of each split, one where turns are slow."""
        return [task for split in self.splits for task in self.some_tasks(1 if self.is_slow else 2, split)]

    @cached_property
    def turn_seconds(self) -> float:
        """Seconds of an answer after the first one, which may load data that all episodes share."""
        if not self.splits:
            return 0.0
        handle, [task] = self.fresh(), self.some_tasks(1, self.splits[0])
        began = time.monotonic()
        with suppress(EnvError):  # the episodes meet it too
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
        requested = sum(min(self.samples, len(self.handle.tasks(split))) for split in self.splits)
        return f"{count} of {requested} episodes, since turns are slow" if count < requested else ""

    def many_tasks(self, split: str) -> list[Task]:
        """The tasks of a split, or many of them."""
        if split not in self._many:
            self._many[split] = looked_at(self.handle.tasks(split), split, self.seed, beat)
        return self._many[split]

    def play(self, task: Task, policy: Policy, handle: EnvHandle | None = None) -> ProbedEpisode:
        """One episode, to its end, to a length that is not needed, or to an error, which is noted."""
        handle = handle or self.handle
        rng = generator("play", self.seed, task.id, policy.__name__)
        seed = int(rng.integers(2**31))
        steps, actions, action = list[Answer](), list[str](), ""
        longest = LONGEST if policy is by_expert else self.most_turns
        try:
            steps.append(handle.reset(task, seed))
            while not steps[-1].ended and len(actions) < longest:
                action = self._action(policy, handle, steps[-1], rng)
                steps.append(handle.step(action))
                actions.append(action)
        except (EnvError, ResetNeeded) as error:
            self.causes.note(error, _owner(error, action))
            return ProbedEpisode(task, seed, actions, steps, handle.instructions, error)
        return ProbedEpisode(task, seed, actions, steps, handle.instructions)

    def _action(self, policy: Policy, handle: EnvHandle, step: Answer, rng: np.random.Generator) -> str:
        """The policy's action; off its own path, an expert that raises is noted and replaced."""
        try:
            return policy(handle, step, rng)
        except EnvError as error:
            if policy is by_expert:
                raise
            self.causes.note(error, "expert")
            return by_random_policy(handle, step, rng)

    def replay(self, played: ProbedEpisode, handle: EnvHandle, turns: int | None = None) -> list[Answer]:
        """The steps that the same task, seed and actions bring in another instance."""
        return [handle.reset(played.task, played.seed), *map(handle.step, played.actions[:turns])]

    @cached_property
    def expert_episodes(self) -> dict[str, list[ProbedEpisode]]:
        """Split -> episodes of the expert; empty without one."""
        if not self.handle.has_expert:
            return {}
        return {split: self._episodes(split, by_expert) for split in self.splits}

    @cached_property
    def random_episodes(self) -> dict[str, list[ProbedEpisode]]:
        """Split -> episodes of the random policy."""
        return {split: self._episodes(split, by_random_policy) for split in self.splits}

    def _episodes(self, split: str, policy: Policy) -> list[ProbedEpisode]:
        """As many as were asked for, or as the time allows, but one; those that began."""
        stop, episodes = time.monotonic() + _POLICY_SECONDS, list[ProbedEpisode]()
        for task in self.some_tasks(self.samples, split):
            episodes.append(self.play(task, policy))
            if self.is_slow and time.monotonic() > stop:
                break
        return [played for played in episodes if played.steps]

    @cached_property
    def _whim_episodes(self) -> list[ProbedEpisode]:
        episodes = [self.play(task, by_whim) for task in self.a_few_tasks()]
        return [played for played in episodes if played.steps]

    @property
    def whim_episodes(self) -> list[ProbedEpisode]:
        """Episodes of all that an agent may do. Raises the first error if no turn of them was answered."""
        if not any(played.actions for played in self._whim_episodes):
            raise self.causes.first
        return self._whim_episodes

    @cached_property
    def first_action(self) -> tuple[ProbedEpisode, str]:
        """A first turn that was answered, if possible one that ended no episode."""
        begun = [played for played in self.whim_episodes if played.actions]
        played = next((played for played in begun if not played.steps[1].ended), begun[0])
        return played, played.actions[0]

    def all_episodes(self) -> Iterator[ProbedEpisode]:
        """Every episode for the checks. Raises the first error if nothing could be played."""
        for episodes in (self.whim_episodes, *self.expert_episodes.values(), *self.random_episodes.values()):
            yield from episodes

    def raise_own(self, check: str) -> None:
        """Raise the first error that belongs to a check, once all episodes are played."""
        with suppress(Exception, SystemExit):  # the same again below, where it is this check's
            for _ in self.all_episodes():
                pass
        if (error := self.causes.of(check)) is not None:
            raise error

    def close(self) -> None:
        """Close all instances. Raises the first error of one of them."""
        errors = list[BaseException]()
        for handle in self.handles:
            try:
                handle.close()
            except (Exception, SystemExit) as error:
                errors.append(error)
        if errors:
            raise errors[0]


def _owner(error: Exception, action: str) -> str:
    """The check that an error of an episode belongs to."""
    if isinstance(error, ResetNeeded):  # it said that it goes on
        return "ends"
    if isinstance(error, EnvError) and error.method == "expert":
        return "expert"
    is_odd = isinstance(error, EnvError) and error.method == "step" and action == NONSENSE
    return "odd actions" if is_odd else TURNS


def text_env_of(handle: EnvHandle) -> TextEnv | None:
    """The ``TextEnv`` inside, if it is one."""
    bare = handle.env.unwrapped
    return bare if isinstance(bare, TextEnv) else None
