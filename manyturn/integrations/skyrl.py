"""SkyRL: an environment of ``manyturn export --as skyrl`` as a ``BaseTextEnv``, run by skyrl-gym 0.4.0.

SkyRL makes an object for each trajectory, with the row of the data set as ``extras``. What the model replies, without
the white space around it, is the action. The reward of a turn is its reward; its parts are in the metadata. Among the
figures of an episode is what credit needs, as ``manyturn.integrations.skyrl_trainer`` reads it.

An environment that raises, and a reward that is not known, raise here too: neither is ever a reward of 0.

Source: the package skyrl-gym 0.4.0, ``skyrl_gym.envs.base_text_env``, and the generator of skyrl 0.4.0.
"""

import math
from pathlib import Path
from typing import Any, ClassVar

from skyrl_gym.envs.base_text_env import BaseTextEnv  # pyright: ignore[reportMissingImports]

from manyturn.envs.hosting.handle.env_handle import Answer, EnvError, EnvHandle
from manyturn.export.exported_env import Exported, task_of
from manyturn.integrations.rollout_fields import rollout_fields


class ExportedEnv(BaseTextEnv):
    """One episode; a subclass says where the export lies.

    Attributes:
        folder: that of the export.
    """

    folder: ClassVar[Path]

    def __init__(self, env_config: Any = None, extras: dict[str, Any] | None = None):
        super().__init__()
        row = extras or {}
        world, self._task = Exported.read(self.folder), task_of(self.folder, row)
        self._seed, self._limit = int(row["seed"]), row.get("max_turns")
        self._handle = EnvHandle(world.name, world.args, world.wrappers)
        self._instructions = self._handle.instructions
        self._invalid, self._last = 0, Answer("")
        self._turns: list[tuple[Answer, Answer]] = []

    def init(self, prompt: Any) -> tuple[list[dict[str, str]], dict[str, Any]]:
        """The first messages, which are also the row's prompt."""
        self.turns, self._invalid, self._turns = 0, 0, []
        self._last = self._handle.reset(self._task, self._seed)
        system = [{"role": "system", "content": self._instructions}] if self._instructions else []
        return [*system, {"role": "user", "content": self._last.observation}], {"task": self._task.id}

    def step(self, action: str) -> dict[str, Any]:
        """One turn. The generator's own limit of turns truncates. Raises EnvError."""
        self.turns += 1
        before, step = self._last, self._handle.step(action.strip())
        if math.isnan(step.reward):
            raise EnvError(f"what turn {self.turns} is worth is not known, so the episode has no reward")
        self._last, self._invalid = step, self._invalid + (not step.understood)
        self._turns.append((before, step))
        cut = not step.ended and self._limit is not None and self.turns >= self._limit
        done = step.ended or cut
        facts = {"truncated": step.truncated or cut, "understood": step.understood, "anchor": step.anchor}
        return {
            "observations": [] if done else [{"role": "user", "content": step.observation}],
            "reward": step.reward,
            "done": done,
            "metadata": {**facts, "reward_parts": dict(step.parts)},
            "postprocessed_action": None,
        }

    def get_metrics(self) -> dict[str, Any]:
        """Figures of the episode, and its turns. SkyRL takes means of numbers, and leaves the turns as they are."""
        metrics: dict[str, Any] = {"turns": self.turns, "invalid": self._invalid, **self._last.measures}
        metrics |= {"credit": rollout_fields(self._turns)} if self._turns else {}
        return metrics if self._last.success is None else metrics | {"success": float(self._last.success)}

    def close(self) -> None:
        self._handle.close()
