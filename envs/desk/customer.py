"""Customers: a ticket that says everything at once, or a person to talk to."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from manyturn.envs.contract.options.options import Options
from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.desk.pack import Pack
from manyturn.envs.desk.solution import Errand, Solution, solution_of
from manyturn.envs.users.acts import Slot
from manyturn.envs.users.agenda import AgendaOptions, AgendaUser, Goal
from manyturn.envs.users.protocol import NOTHING, Heard, User

WAIT = "This ticket takes no replies: call a tool, or call close when you are done."
_IDENTITY = {"user": "customer id", "email": "email address", "name": "full name", "zip_code": "zip code"}


class TicketOptions(Options):
    """There are none."""


class Ticket(User):
    """All that is wanted, in writing; nobody answers."""

    name = "ticket"

    def begin(self, task: Task, rng: np.random.Generator) -> str:
        return ticket(solution_of(task))

    def hear(self, text: str, cue: Mapping[str, Any] = NOTHING) -> Heard:
        return Heard(WAIT)

    def save(self) -> None:
        return None

    def load(self, state: Any) -> None:
        """There is no state."""


def ticket(solution: Solution) -> str:
    """A task in writing."""
    parts = [f"Customer {', '.join(identity(solution).values())}."] if solution.way != "id" else []
    parts += [errand.sentence for errand in solution.errands]
    if solution.figure:
        parts.append(f"Tell the {solution.figure[0]}.")
    return " ".join(parts)


def identity(solution: Solution) -> dict[str, str]:
    """Slot -> what tells who the customer is; empty where things are named by their ids."""
    user = solution.user
    identity = {"user": {"user": solution.user_id}, "email": {"email": user["email"]}}
    identity["name"] = {"name": user["name"], "zip_code": user["zip_code"]}
    return identity.get(solution.way, {})


def facts_of(solution: Solution, errand: Errand) -> dict[str, str]:
    """Slot -> what the customer must be asked for one request; slots of different kinds have different names."""
    name = errand.kind.name
    facts = {f"{name} id": errand.call.arguments[errand.kind.about]} if solution.way == "id" else {}
    return facts | {f"{name} {slot}": value for slot, value in errand.slots.items()}


def nouns(pack: Pack) -> dict[str, str]:
    """Slot -> what people call it."""
    facts_of = dict(_IDENTITY)
    for kind in pack.kinds:
        facts_of[f"{kind.name} id"] = f"{pack.things[kind.about].noun} id for the {kind.name} request"
        facts_of |= {f"{kind.name} {slot}": noun for slot, noun in kind.slots.items()}
    return facts_of


def wish(solution: Solution, errand: Errand) -> str:
    """Opening words of a customer, without ids."""
    noun = solution.pack.things[errand.kind.about].noun
    words = f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}" if solution.way == "id" else errand.words
    return errand.kind.wish.format(object=words)


def goal_of(task: Task) -> Goal:
    """A task as an agenda."""
    solution = solution_of(task)
    facts = identity(solution)
    for errand in solution.errands:
        facts |= facts_of(solution, errand)
    wishes = {errand.kind.name: wish(solution, errand) for errand in solution.errands}
    return Goal(wishes, facts, requests=("asked",) if solution.figure else ())


class Customer(AgendaUser):
    """Says what it wants one request after the other, and what it knows when it is asked.

    Args:
        pack: the desk.
        options: noise and patience.
    """

    def __init__(self, pack: Pack, options: AgendaOptions):
        super().__init__([Slot(name, (noun,)) for name, noun in nouns(pack).items()], goal_of, options)

    def begin(self, task: Task, rng: np.random.Generator) -> str:
        figure = solution_of(task).figure
        if figure:  # each task asks for a figure of its own
            self._slots["asked"] = Slot("asked", (figure[0],), pattern=r"\d+")
        else:
            self._slots.pop("asked", None)
        return super().begin(task, rng)


def done(solution: Solution, right: Iterable[str], text: str) -> list[str]:
    """The requests that are settled: fulfilled ones, and those refused by the right rule."""
    named = solution.named(text)
    return [e.kind.name for e in solution.errands if (e.rule in named if e.rule else e.kind.name in right)]
