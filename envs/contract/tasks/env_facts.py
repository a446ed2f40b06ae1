"""Facts about an environment before an episode is played; the seats of a run have them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from manyturn.envs.contract.tasks.task import Direction, Task


@dataclass(frozen=True, kw_only=True)
class EnvFacts:
    """Facts about an open environment, to judge options by.

    Attributes:
        name: its id, or ``FILE.py:Class``.
        instructions: text that an agent reads once, with the tools it may call.
        splits: names of its splits.
        roles: roles of an episode; a single name where it has one.
        user: partner that the agent talks to; None if there is none.
        max_turns: the turn at which it truncates an episode; None where it has no limit of its own.
        part_names: reward parts that it and its wrappers list, whether or not a turn earns them.
        lists_parts: ``part_names`` has every part that a turn can earn besides the outcome.
        has_expert: it has an expert.
        has_answer: resets can give the true answer.
        has_admissible: turns can list their admissible commands.
        has_progress: turns can report their progress.
        has_anchor_text: situations have a text, by which similar ones can be recognised.
        tasks: the tasks of a split.
        vary: a harder or an easier task than one of its own; None where it varies none.
        split_rule: the split that a task belongs to by its content; None where no rule is known.
    """

    name: str
    instructions: str
    splits: tuple[str, ...]
    roles: tuple[str, ...]
    user: str | None
    max_turns: int | None
    part_names: tuple[str, ...]
    lists_parts: bool
    has_expert: bool
    has_answer: bool
    has_admissible: bool
    has_progress: bool
    has_anchor_text: bool
    tasks: Callable[[str], Sequence[Task]]
    vary: Callable[[Task, Direction, np.random.Generator], Task | None] | None = None
    split_rule: Callable[[Task], str] | None = None
