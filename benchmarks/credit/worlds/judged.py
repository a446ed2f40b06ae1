"""Worlds whose turns have a verdict as a part of the reward: 1 where the expert would have done the same."""

from dataclasses import replace

from manyturn.envs.classics.maze import Maze
from manyturn.envs.contract.env.turn import Turn
from manyturn.envs.household.env import Household

PART = "judge"


class JudgedMaze(Maze):
    """The maze, judged."""

    part_names = (PART,)

    def respond(self, action: str) -> Turn:
        right = float(action == self.expert())
        turn = super().respond(action)
        return replace(turn, parts={**turn.parts, PART: right})


class JudgedHousehold(Household):
    """Household, judged."""

    part_names = (PART,)

    def respond(self, action: str) -> Turn:
        right = float(action == self.expert())
        turn = super().respond(action)
        return replace(turn, parts={**turn.parts, PART: right})
