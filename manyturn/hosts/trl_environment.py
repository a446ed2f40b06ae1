"""TRL: an environment that ``manyturn export --as trl`` wrote, for the ``environment_factory`` of ``GRPOTrainer``.

TRL resets an object with a row of its data set, gives the model the method ``act`` as a tool, and asks for the reward
of the whole episode at its end. What a turn earned has no place there: ``manyturn.hosts.trl`` carries that.

TRL shows the model what a tool raises, and goes on to a reward. So a fault of the environment, or a reward that is not
known, is kept here, and the reward is None: TRL leaves such a completion out of its group.

Source: the package trl 1.16.0, ``trl.trainer.grpo_trainer``. Nothing of it is imported.
"""

import math
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from manyturn.envs.contract.panel import PanelError
from manyturn.envs.contract.task import Task
from manyturn.envs.hosting.host import Answer, EnvError, Host
from manyturn.exported import Exported

_LOST = "The environment is lost, and the episode with it."
_OVER = "The episode has ended."


class ToolEnvironment:
    """Episodes, one after the other; a subclass says where the export lies.

    Public methods other than ``reset`` and ``get_reward`` would be tools.

    Attributes:
        folder: that of the export.
    """

    folder: ClassVar[Path]

    def __init__(self) -> None:
        world = Exported.read(self.folder)
        self._host = Host(world.name, world.args, world.wrappers)
        self._return, self._over = math.nan, True

    def reset(self, **row: Any) -> str:
        """Begin the episode of a row; the text is added to the last message of its prompt. Raises PanelError."""
        if missing := {"task", "split", "content", "seed"} - row.keys():
            raise ValueError(f"the row lacks {', '.join(sorted(missing))}: take the rows of data/ as they are")
        task = _tasks(self.folder, row["split"]).get(row["task"])
        if task is None or task.content != row["content"]:
            raise PanelError(f"task {row['task']} of split {row['split']} is none of this export: take its own data/")
        self._return, self._over = 0.0, False
        return self._told(lambda: self._host.reset(task, int(row["seed"])))

    def act(self, action: str) -> str:
        """Take one action in the environment.

        Args:
            action: The text of the action, as the instructions say.

        Returns:
            What the environment answers.
        """
        if self._over:
            return _LOST if math.isnan(self._return) else _OVER
        return self._told(lambda: self._host.step(str(action).strip()))

    def get_reward(self) -> float | None:
        """What the episode has earned, also if it was cut off; None if that is not known."""
        return None if math.isnan(self._return) else self._return

    def _told(self, asked: Any) -> str:
        """The text of an answer, whose reward is added. After a fault there is none, and no reward."""
        try:
            answer: Answer = asked()
        except EnvError:
            self._return, self._over = math.nan, True
            return _LOST
        self._return += answer.reward
        self._over = answer.ended or math.isnan(self._return)
        return answer.observation


@cache
def _tasks(folder: Path, split: str) -> dict[str, Task]:
    """Id -> task of a split, read once in each process."""
    return {task.id: task for task in Exported.read(folder).tasks(split)}
