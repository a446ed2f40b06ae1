"""Base of the dialogue environments."""

import abc
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from manyturn.envs.contract.env.turn import Turn
from manyturn.envs.users.user_env import UserEnv

REWARDS = ("outcome", "turns")


class TalkEnv(UserEnv):
    """A dialogue that pays at its end, or at every turn besides. Override ``reply`` in place of ``respond``.

    Args:
        split, user, max_turns: see ``UserEnv``.
        difficulty: one of ``levels``; default: the first.
        rewards: ``outcome``, or ``turns``, which adds at each turn the part ``turn_part``, the change of ``progress``.
            It is paid on top of the outcome and does not preserve the optimal policy in general; the wrapper
            ``progress_reward`` is the form that does.

    Attributes:
        turn_part: name of the part that ``rewards="turns"`` adds.
    """

    turn_part: ClassVar[str]
    harmless = (*UserEnv.harmless, "rewards", "user:rule", "user:agenda")
    part_names = ()

    def __init__(
        self,
        split: str = "train",
        difficulty: str | None = None,
        user: str | Mapping[str, Any] | None = None,
        rewards: str = "outcome",
        max_turns: int | None = None,
    ):
        if rewards not in REWARDS:
            raise ValueError(f"no rewards {rewards!r}: choose {' or '.join(REWARDS)}")
        super().__init__(split, user, max_turns, difficulty)
        self._pays_turns = rewards == "turns"
        if self._pays_turns:
            self.part_names = (self.turn_part,)  # what this instance gives

    @abc.abstractmethod
    def reply(self, action: str) -> Turn:
        """Take one action, as ``respond`` does, without the part of the turn."""

    @abc.abstractmethod
    def progress(self) -> float:
        """Share of the goal that is reached, in [0, 1]."""

    def respond(self, action: str) -> Turn:
        if not self._pays_turns:
            return self.reply(action)
        before = self.progress()
        turn = self.reply(action)
        change = self.progress() - before
        return replace(turn, parts={**turn.parts, self.turn_part: change}) if change else turn
