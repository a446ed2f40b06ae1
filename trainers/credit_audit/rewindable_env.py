"""Environment that can go back to any situation of its episodes: by its snapshots, or by repeating the actions."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from manyturn.envs.contract.env.text_env import TextEnv, Unsupported
from manyturn.envs.contract.env.turn import OUTCOME
from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.hosting.handle.env_handle import Answer, EnvError, EnvHandle
from manyturn.trainers.credit_audit.common_random_numbers import is_drawn
from manyturn.trainers.credit_audit.config import AuditConfig

Step = tuple[str, float, bool, bool, dict[str, Any]]


class Situation(NamedTuple):
    """A state between two turns, in which the policy acts, as plain values.

    Attributes:
        snapshot: what leads the environment back to it: its own snapshot, or the actions so far as JSON.
        turn: number of the turn that comes next.
        forced: the action that continuations begin with; None: the policy chooses.
        member: of the group, that was there first; a policy that remembers goes on from its past.
    """

    snapshot: str
    turn: int
    observation: str
    admissible: list[str] | None
    forced: str | None = None
    member: int = 0


class World:
    """Holds one environment.

    Args:
        env: id or ``FILE.py:Class``.
        args: of its constructor.
        config: says what an environment without a limit of turns is limited to, whether what is random is drawn again
            after a return to a situation, where that can be done, and which rewards count.

    Raises:
        ValueError: the environment has several roles.
    """

    def __init__(self, env: str, args: Mapping[str, Any] | None, config: AuditConfig):
        self.handle = EnvHandle(env, args)
        if len(self.handle.roles) > 1:
            raise ValueError(f"{env} has the roles {', '.join(self.handle.roles)}: audit one with a single role")
        bare = self.handle.env.unwrapped
        self._text_env = bare if isinstance(bare, TextEnv) else None
        self._redraws = config.chance == "redrawn" and self._text_env is not None
        self._only_outcome = config.reward == "outcome"
        self.max_turns = self.handle.max_turns or config.max_turns
        self._task, self._seed, self._actions = Task("", ""), 0, list[str]()

    @property
    def restores(self) -> bool:
        """True where snapshots hold the state; otherwise actions are repeated."""
        return self._text_env is not None and type(self._text_env).save is not TextEnv.save

    @property
    def _rng(self) -> np.random.Generator | None:
        return self._text_env.rng if self._redraws and self._text_env is not None else None

    def tasks(self, split: str, most: int) -> list[Task]:
        """The first tasks of a split."""
        return list(self.handle.tasks(split)[:most])

    def begin(self, task: Task, seed: int) -> Answer:
        """Begin an episode of the group."""
        self._task, self._seed, self._actions = task, seed, []
        return self.handle.reset(task, seed)

    def play(self, action: str) -> tuple[Answer, bool]:
        """A turn of an episode of the group: what it brought, and whether chance had a part in it."""
        rng = self._rng
        state = rng.bit_generator.state if rng is not None else None
        self._actions.append(action)
        return self.handle.step(action), is_drawn(state, rng)

    def snapshot(self) -> str:
        """The way back to where the episode is."""
        return self._text_env.snapshot().decode() if self._text_env else json.dumps(self._actions)

    def turn_to(self, task: Task, seed: int, situation: Situation, chance: Any = None) -> None:
        """Go back to a situation of a task.

        Args:
            chance: state of the generator that what is random is drawn from hereafter.

        Raises:
            EnvError: the same actions led to another observation.
        """
        if self._text_env:
            if getattr(self._text_env, "task", None) is None:
                self.handle.reset(task, seed)
            self._text_env.restore(situation.snapshot.encode())
            if chance is not None and self._redraws:
                self._text_env.rng.bit_generator.state = chance
            return
        answer = self.handle.reset(task, seed)
        for action in json.loads(situation.snapshot):
            answer = self.handle.step(action)
        if answer.observation != situation.observation:
            raise EnvError(
                f"{self.handle.name} answers {situation.turn} repeated actions of {task.id} with another observation, "
                "so that continuations would begin elsewhere: draw what is random from the seed of reset, or make it a "
                "TextEnv with save and load"
            )

    def step(self, action: str) -> Step:
        """A turn of a continuation, without what only episodes are recorded with."""
        text, reward, terminated, truncated, info = self.handle.env.step(action)
        return text, float(reward), terminated, truncated, info

    def counted(self, reward: float, parts: Mapping[str, float]) -> float:
        """As much of a turn's reward as true effects are of."""
        return parts.get(OUTCOME, 0.0) if self._only_outcome else reward

    def expert(self) -> str:
        """The expert's action. Raises Unsupported without one."""
        return self.handle.expert()

    def check_expert(self) -> None:
        """Raises Unsupported where there is no expert."""
        if not self.handle.has_expert:
            raise Unsupported(f"{self.handle.name} has no expert: audit another policy, such as --policy random")

    def close(self) -> None:
        self.handle.close()
