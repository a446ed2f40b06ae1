"""Causes of errors: each belongs to one check, and is a consequence at all others that meet it."""

import traceback
from dataclasses import dataclass, field
from typing import NamedTuple

from manyturn.envs.conformance.verdicts import Fault
from manyturn.envs.contract.env.error_location import place_of
from manyturn.envs.contract.env.space_containment import ExcludedText
from manyturn.envs.contract.env.turn import ContractError
from manyturn.envs.hosting.handle.env_handle import EnvError

TURNS = "turns"  # the check of what a policy meets first: it owns what several checks could


class Cause(NamedTuple):
    """Kind of an error and the line that raised it; its text where no line of the environment did."""

    kind: str
    where: str


@dataclass
class Blame:
    """Cause, its check, and the first error of it.

    Attributes:
        message: the error and its place as other processes write them too; empty where that is not known.
    """

    owner: str
    error: BaseException
    message: str


@dataclass
class Causes:
    """Causes that the episodes and checks have met so far, in their order."""

    blames: dict[Cause, Blame] = field(default_factory=dict)

    def note(self, error: BaseException, owner: str) -> None:
        """Record an error; a cause keeps its first owner, unless a sensible action met it too."""
        cause, root = cause_of(error), _root(error)
        owner = "spaces" if isinstance(root, ExcludedText) else owner
        blame = self.blames.get(cause)
        if blame is None:
            self.blames[cause] = Blame(owner, error, getattr(error, "cause", ""))
        elif owner == TURNS != blame.owner:
            blame.owner, blame.error = owner, error

    def owner(self, error: BaseException) -> str | None:
        """The check that an error belongs to; None if its cause is new."""
        if blame := self.blames.get(cause_of(error)):
            return blame.owner
        text = str(error) if isinstance(error, EnvError) else ""  # of another process, which sends the text only
        return next((each.owner for each in self.blames.values() if each.message and each.message in text), None)

    def of(self, owner: str) -> BaseException | None:
        """The first error of a check."""
        return next((blame.error for blame in self.blames.values() if blame.owner == owner), None)

    @property
    def first(self) -> BaseException:
        """The first error of all."""
        return next(iter(self.blames.values())).error


def cause_of(error: BaseException) -> Cause:
    """Cause of an error: the same for all errors of one kind from one line."""
    root = _root(error)
    if isinstance(root, ContractError):
        place = None if root.placed else place_of(root)
        return Cause(type(root).__name__, place or str(root))
    # Not str(root), which may raise too.
    return Cause(type(root).__name__, place_of(root) or traceback.format_exception_only(root)[-1].strip())


def _root(error: BaseException) -> BaseException:
    while isinstance(error, EnvError | Fault) and error.__cause__ is not None:
        error = error.__cause__
    return error
