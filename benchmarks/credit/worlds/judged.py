"""Worlds whose turns have a verdict as a part of the reward: 1 where the expert would have done the same."""

from dataclasses import replace
from typing import Any

from manyturn.envs.clarify.env import Clarify
from manyturn.envs.classics.maze import Maze
from manyturn.envs.contract.env.turn import Turn
from manyturn.envs.drafts.env import Drafts
from manyturn.envs.household.env import Household
from manyturn.envs.sql.env import SQL

PART = "judge"


class _Judged:
    """Verdicts on the turns of the environment that a class is derived from as well."""

    part_names = (PART,)

    def respond(self, action: str) -> Turn:
        env: Any = super()
        right = float(action == env.expert())
        turn = env.respond(action)
        return replace(turn, parts={**turn.parts, PART: right})


class JudgedMaze(_Judged, Maze):
    """The maze, judged."""


class JudgedHousehold(_Judged, Household):
    """Household, judged."""


class JudgedSQL(_Judged, SQL):
    """Questions over databases, judged."""


class JudgedDrafts(_Judged, Drafts):
    """Drafts, judged."""


class JudgedClarify(_Judged, Clarify):
    """Requests that may need a question, judged."""

    def __init__(self, split: str = "train", difficulty: str = "tiny"):
        super().__init__(split, difficulty)
        self.part_names = (*(self.part_names or ()), PART)
