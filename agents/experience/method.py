"""Methods of improvement: how attempts become entries of an experience. Each is a file in ``methods/``."""

import abc
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import Field

from manyturn.agents.experience.attempts import Attempts
from manyturn.agents.experience.store import SHOWN, Experience, ExperienceEntry
from manyturn.envs.contract.options.registry import Named, Registry

Write = Callable[[Sequence[tuple[str, str]]], Awaitable[list[str]]]
"""Asks the writer for texts, one for each pair of a name, unique in the round, and a prompt; the text is empty where a
limit of the writer left it out."""


class MethodConfig(Named):
    """Options that all methods have."""

    attempts: int = Field(default=1, ge=1)
    """Attempts at each task in a round."""


class WritingConfig(MethodConfig):
    """Options of methods that ask the writer for texts about attempts."""

    transcript: int = Field(default=8000, ge=200)
    """Longest transcript of an attempt that the writer reads, in characters; the middle of a longer one is left out."""


@dataclass(frozen=True)
class Round:
    """One round of attempts.

    Attributes:
        number: from 1.
        tasks: attempts task by task.
        experience: the experience that they were made with.
    """

    number: int
    tasks: Sequence[Attempts]
    experience: Experience

    def entry(self, number: int, text: str, *of: Attempts) -> ExperienceEntry:
        """A lesson of this round from attempts at some tasks; it is always shown."""
        return ExperienceEntry(
            f"r{self.number}-{number}",
            text,
            contents=tuple(sorted({one.content for one in of})),
            round=self.number,
        )

    def case(self, number: int, text: str, of: Attempts, *, success: bool) -> ExperienceEntry:
        """An entry of this round about one task; it is shown at tasks that resemble it."""
        return ExperienceEntry(f"r{self.number}-{number}", text, of.about, of.task, (of.content,), self.number, success)


class Method(abc.ABC):
    """Base of the methods. It keeps nothing from round to round: what it learns is in the experience.

    Attributes:
        writes: True if it asks the writer for texts.
        by_task: True if it makes entries about single tasks, which are shown at tasks that resemble these.
        shown: entries about single tasks that a policy is shown at most.
    """

    writes: bool = True
    by_task: bool = True
    shown: int = SHOWN

    def due(self, tasks: Sequence[str], solved: Collection[str]) -> Sequence[str]:
        """Ids of the tasks that are attempted in a round, in order; by default all.

        Args:
            tasks: ids of the round's tasks.
            solved: ids of those at which an attempt has succeeded in an earlier round.
        """
        return tasks

    @abc.abstractmethod
    async def learn(self, played: Round, write: Write) -> Sequence[ExperienceEntry]:
        """The entries that the experience has after a round; those that stay are given back as they are."""


METHODS: Registry[Any] = Registry("method of improvement", "manyturn.agents.experience.methods")
