"""Pack of a desk: tables, tools, the rules of its policy, and the kinds of customers' requests."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from manyturn.envs.contract.stable_random import Draws
from manyturn.envs.desk.base_tools import DeskTools
from manyturn.envs.desk.database import Store, Tables
from manyturn.envs.tools.calls import CallRequest

Arguments = Mapping[str, Any]
Drawn = tuple[Arguments, Mapping[str, str]] | None
"""A request about a thing: the tool's other arguments, and what the customer says for each slot; None if none fits."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of the policy, in words and as a check. Tools do not enforce it: that is the agent's work.

    Args:
        name: such as ``R3``; what an agent says that refuses by it.
        text: what the agent is told.
        tools: the tools that it forbids to call.
        broken: whether a call with these arguments would break it.
    """

    name: str
    text: str
    tools: frozenset[str]
    broken: Callable[[Store, Arguments], bool]


@dataclass(frozen=True, slots=True)
class Thing:
    """A sort of records that requests are about.

    Args:
        table: where they are; a user's record has a field of this name with the keys of those that are the user's.
        get: the tool that shows one.
        noun: what a customer calls one, such as ``order``.
        by: how a customer describes one, such as ``the order with the {words}``.
        words: descriptions of a record; one that fits no other record of the customer will do.
    """

    table: str
    get: str
    noun: str
    by: str
    words: Callable[[Store, str], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of request, fulfilled by one write.

    Args:
        name: short.
        tool: that fulfils it.
        about: the argument that names the thing that it is about.
        ticket: the request in writing, with ``{object}`` and the names of ``slots``.
        wish: as a customer begins to say it, with ``{object}`` alone.
        slots: what a customer must be asked for, with a noun for it.
        draw: a request about the thing with this key.
        reads: calls that find out what the customer does not say, besides the one that shows the thing.
        simple: whether it is asked for at the lowest difficulty.
    """

    name: str
    tool: str
    about: str
    ticket: str
    wish: str
    slots: Mapping[str, str]
    draw: Callable[[Draws, Store, str], Drawn]
    reads: Callable[[Store, Arguments], tuple[CallRequest, ...]] = lambda store, arguments: ()
    simple: bool = False


def no_arguments(draws: Draws, store: Store, key: str) -> Drawn:
    """The request that says all by the thing that it is about."""
    return {}, {}


@dataclass(frozen=True, slots=True)
class Pack:
    """A desk.

    Args:
        name: such as ``retail``.
        place: what the agent is told about where it works.
        tables: users and seed -> the database.
        desk_tools: the tools.
        rules: the policy.
        kinds: of requests.
        things: argument -> what it names.
        figures: a field of the first of ``things`` that customers ask for and no tool changes -> its noun.
        brief: table -> the fields that simple kinds of requests, and the rules that forbid some, turn on.
        ids: letter -> the argument that takes ids such as this letter and a number.
    """

    name: str
    place: str
    tables: Callable[[int, int], Tables]
    desk_tools: type[DeskTools]
    rules: tuple[Rule, ...]
    kinds: tuple[Kind, ...]
    things: Mapping[str, Thing]
    figures: Mapping[str, str]
    brief: Mapping[str, tuple[str, ...]]
    ids: Mapping[str, str]

    def forbidding(self, store: Store, call: CallRequest) -> list[Rule]:
        """The rules that a call would break."""
        return [rule for rule in self.rules if call.name in rule.tools and rule.broken(store, call.arguments)]

    def rules_for(self, simple: bool) -> str:
        """The rules in words, a line for each.

        Args:
            simple: only those that can forbid a request of a simple kind.
        """
        tools = {kind.tool for kind in self.kinds if kind.simple or not simple}
        rules = [rule for rule in self.rules if not simple or rule.tools & tools]
        return "\n".join(f"{rule.name}. {rule.text}" for rule in rules)
