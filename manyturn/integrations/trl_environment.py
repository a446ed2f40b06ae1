"""TRL: an environment of ``manyturn export --as trl`` for ``environment_factory``, run by trl 1.16.0.

TRL resets an object with a row of its data set, gives the model the method ``act`` as a tool, and asks for the reward
of the whole episode at its end. What a turn earned has no place there: ``manyturn.integrations.trl`` carries that.

TRL shows the model what a tool raises, and goes on to a reward. So the reward is None after any error, and where it is
not known: TRL leaves such a completion out of its group. An environment that raised is closed, and the next episode has
another. Where episode after episode is lost, nothing would be learnt, and TRL would not say so: then ``reset`` raises,
which ends the training.

Source: the package trl 1.16.0, ``trl.trainer.grpo_trainer``. Nothing of it is imported.
"""

import contextlib
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from manyturn.envs.hosting.handle.env_handle import Answer, EnvError, EnvHandle
from manyturn.export.exported_env import Exported, task_of
from manyturn.terminal.command_exit import line_of

_LOST = "The environment is lost, and the episode with it."
_OVER = "The episode has ended."
_ROW = 32  # episodes lost one after the other, of all environments of an export in this process


class ToolEnvironment:
    """Episodes, one after the other; a subclass says where the export lies.

    Public methods other than ``reset`` and ``get_reward`` would be tools.

    Attributes:
        folder: that of the export.
        lost_in_a_row: episodes that were lost since the last one that was not, of all environments in this process.
    """

    folder: ClassVar[Path]
    lost_in_a_row: ClassVar[int] = 0

    def __init__(self) -> None:
        self._handle: EnvHandle | None = (
            self._made()
        )  # here already, so that one that cannot be made ends the training early
        self._return, self._over = math.nan, True
        self._why = ""  # the last episode here was lost

    def reset(self, **row: Any) -> str:
        """Begin the episode of a row; the text is added to the last message of its prompt.

        Raises:
            PanelError: the row is of another export.
            RuntimeError: the episodes before were all lost.
        """
        kind = type(self)
        if not math.isnan(self._return):
            kind.lost_in_a_row = 0
        elif kind.lost_in_a_row >= _ROW:
            raise RuntimeError(
                f"{kind.lost_in_a_row} episodes one after the other were lost, the last one here by {self._why}: "
                f"fix the environment, which manyturn check {Exported.read(self.folder).name} examines"
            )
        self._return, self._over = math.nan, True
        task, seed = task_of(self.folder, row), int(row["seed"])
        self._return = 0.0
        return self._answer_text(lambda handle: handle.reset(task, seed))

    def act(self, action: str) -> str:
        """Take one action in the environment.

        Args:
            action: The text of the action, as the instructions say.

        Returns:
            What the environment answers.
        """
        if self._over:
            return _LOST if math.isnan(self._return) else _OVER
        return self._answer_text(lambda handle: handle.step(str(action).strip()))

    def get_reward(self) -> float | None:
        """Return of the episode, also if it was truncated; None if it cannot be scored."""
        return None if math.isnan(self._return) else self._return

    def _answer_text(self, ask: Callable[[EnvHandle], Answer]) -> str:
        """The text of an answer, whose reward is added. After any error there is no reward.

        Raises what is no error of the environment, such as a wrapper that does not fit it.
        """
        try:
            if self._handle is None:
                self._handle = self._made()
            answer = ask(self._handle)
        except Exception as error:
            self._give_up(error)
            if isinstance(error, EnvError):
                return _LOST
            raise
        self._return += answer.reward
        self._over = answer.ended or math.isnan(self._return)
        if math.isnan(self._return):
            self._count("a reward that is no number")
        return answer.observation

    def _count(self, why: str) -> None:
        """One more episode is lost."""
        self._why = why
        type(self).lost_in_a_row += 1

    def _made(self) -> EnvHandle:
        world = Exported.read(self.folder)
        return EnvHandle(world.name, world.args, world.wrappers)

    def _give_up(self, why: Exception) -> None:
        """End the episode without a reward, and close the environment: nobody knows what its next episode would be."""
        self._return, self._over = math.nan, True
        self._count(line_of(why))
        lost, self._handle = self._handle, None
        if lost is not None:
            with contextlib.suppress(Exception):  # the first error is the one to see
                lost.close()
