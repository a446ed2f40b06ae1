"""The column "drawer" (K): the member of the group that drew the turn; a branch repeats turns that others drew.

Turns of one task with equal numbers, equal drawers and equal pasts are one and the same draw. Without branches each
turn is drawn by its own episode.
"""

from typing import Any, Literal

import numpy as np

from manyturn.agents.play.episode import Episode
from manyturn.envs.contract.tasks.env_facts import EnvFacts
from manyturn.trainers.credit.batch.turn_batch import FloatK
from manyturn.trainers.learn.learner.column import COLUMNS, ColumnConfig, PlayedStep, Supplied


class DrawerConfig(ColumnConfig):
    name: Literal["drawer"] = "drawer"

    def refuse(self, run: Any, env: EnvFacts | None) -> str | None:
        if run.rollout.branching is not None:
            return None
        return (
            "says which turns of a branch others drew, and without rollout.branching nothing branches: set it, such as "
            "rollout.branching.initial = 2"
        )


@COLUMNS.register(DrawerConfig)
def drawer(step: PlayedStep, config: DrawerConfig) -> Supplied:
    """Of each turn, and the share of turns that are repeated."""

    def of(episode: Episode) -> FloatK:
        drawer_K, fork = np.full(len(episode.turns), float(episode.key.member)), step.forks.get(episode.key)
        if fork is not None:  # its parent may be a branch itself
            drawer_K[: fork.turn] = of(fork.parent)[: fork.turn]
        return drawer_K

    drawers = [of(episode) for episode in step.episodes]
    repeated = [drawer_K != episode.key.member for drawer_K, episode in zip(drawers, step.episodes, strict=True)]
    figures = {"repeated_turns": float(np.concatenate(repeated).mean())}
    return Supplied(columns={"drawer": np.concatenate(drawers)}, figures=figures)
