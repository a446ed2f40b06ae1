"""Facts about an environment before an episode is played; the seats of a run have them."""

from collections.abc import Sequence
from typing import Protocol

from manyturn.envs.contract.task import Task


class EnvFacts(Protocol):
    """Facts about an open environment, to judge options by."""

    @property
    def name(self) -> str:
        """Its id, or ``FILE.py:Class``."""
        ...

    @property
    def roles(self) -> tuple[str, ...]:
        """Roles of an episode; a single name where it has one."""
        ...

    @property
    def instructions(self) -> str:
        """Instructions that an agent reads once, with the tools it may call."""
        ...

    @property
    def has_expert(self) -> bool:
        """True if it has an expert."""
        ...

    @property
    def has_answer(self) -> bool:
        """True if resets can give the true answer."""
        ...

    @property
    def has_admissible(self) -> bool:
        """True if turns can list their admissible commands."""
        ...

    @property
    def has_progress(self) -> bool:
        """True if turns can report their progress."""
        ...

    @property
    def has_anchor_text(self) -> bool:
        """True if situations have a text, by which similar ones can be recognised."""
        ...

    @property
    def max_turns(self) -> int | None:
        """The turn at which it truncates an episode; None where it has no limit of its own."""
        ...

    @property
    def part_names(self) -> tuple[str, ...]:
        """Reward parts that it and its wrappers list, whether or not a turn earns them."""
        ...

    @property
    def lists_parts(self) -> bool:
        """True if ``part_names`` names every part that a turn can earn besides the outcome."""
        ...

    def tasks(self, split: str) -> Sequence[Task]:
        """The tasks of a split."""
        ...
