"""A taskset of verifiers, run against verifiers 0.4.0, as an environment of text: ``verifiers:PACKAGE``.

Source: the package verifiers 0.4.0, ``verifiers.v1``: ``Taskset``, ``Task``, ``Env`` and ``Trace``.
"""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from manyturn.envs.contract.env.text_env import TextEnv
from manyturn.envs.contract.env.turn import OUTCOME, Turn, checked_turn
from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.verifiers.env_thread import HostedEnv, HostedEpisode, hosted
from manyturn.envs.verifiers.taskset_loader import installed_version, splits_of


class TasksetEnv(TextEnv):
    """The agent reads what the package's environment says, or the task's prompt, and answers with text.

    The rewards are paid at the end, each by its weight under its own name. What is drawn by chance is the package's own
    affair: verifiers has no seed of an episode.

    Args:
        package: the name of the installed package.
        taskset: fields of its taskset's configuration, such as ``{"split": "test"}``.
        options: fields of its environment's configuration.
        size: how many tasks a taskset without end has here.
        max_turns: truncates an episode; the package judges what there is by then.
        success_from: the sum of rewards from which on an episode is a success.
    """

    max_turns = 100
    harmless = (*TextEnv.harmless, "size", "success_from")  # the others may name functions to import

    def __init__(
        self,
        package: str,
        taskset: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
        size: int = 1000,
        max_turns: int | None = None,
        success_from: float = 1.0,
    ):
        self._same = {"package": package, "version": installed_version(package)}
        if size < 1:
            raise ValueError(f"size = {size} must be at least 1")
        given = dict(taskset or {})
        of_splits = splits_of(package, given)
        self.splits = tuple(of_splits)
        super().__init__(self.splits[0], max_turns)
        self._from, self._size = success_from, size
        self._package, self._options = package, json.dumps(dict(options or {}), sort_keys=True)
        self._tasksets = {split: json.dumps({**given, **more}, sort_keys=True) for split, more in of_splits.items()}
        self._tasks: dict[str, list[Task]] = {}
        prompts = {task.data.system_prompt for task in self._hosted(self.split).tasks}
        self.instructions = (prompts.pop() or "") if len(prompts) == 1 else ""
        self._entered: HostedEnv | None = None
        self._episode: HostedEpisode | None = None
        self._figures: dict[str, float] = {}

    def _hosted(self, split: str) -> HostedEnv:
        return hosted(self._package, self._tasksets[split], self._options, self._size)

    def tasks(self, split: str) -> Sequence[Task]:
        if split not in self._tasks:
            numbered = enumerate(self._hosted(split).tasks)
            self._tasks[split] = [Task(f"{split}/{i}", split, {**self._same, "hash": one.hash}) for i, one in numbered]
        return self._tasks[split]

    def begin(self, task: Task, rng: np.random.Generator) -> str:
        place = self._hosted(task.split)
        if self._entered is not place:
            self._leave()
            place.enter()
            self._entered = place
        elif self._episode is not None:
            self._episode.abandon()
        self._figures = {}
        own = place.tasks[int(task.id.rpartition("/")[2])]
        self._episode = HostedEpisode(place, own)
        text = self._episode.say(None)
        if not isinstance(text, str):
            raise ValueError(f"the environment of {self._package} ended {task.id} before the first reply")
        system = own.data.system_prompt
        return f"{system}\n\n{text}" if system and system != self.instructions else text

    def respond(self, action: str) -> Turn:
        assert self._episode is not None
        message = self._episode.say(action)
        is_out_of_turns = isinstance(message, str) and self.turn + 1 >= self.max_turns
        if isinstance(message, str) and not is_out_of_turns:
            return self.go_on(message)
        text = message if isinstance(message, str) else "The episode has ended."
        while isinstance(message, str):
            message = self._episode.say(None)
        parts = {name: math.nan if one is None else float(one.value) for name, one in message.rewards.items()}
        parts = parts or {OUTCOME: math.nan}  # nothing has judged it
        self._figures = {name: float(one) for name, one in message.metrics.items() if one is not None}
        success = sum(parts.values()) >= self._from
        return checked_turn(Turn(text, parts, terminated=not is_out_of_turns, success=success))

    def measures(self) -> Mapping[str, float]:
        return self._figures

    def close(self) -> None:
        self._leave()

    def _leave(self) -> None:
        if self._entered is not None:
            if self._episode is not None:
                self._episode.abandon()
            self._entered.leave()
        self._entered = self._episode = None
