"""Plainest words and calls of an agent at the booking desk."""

from collections.abc import Mapping, Sequence
from typing import Any

from manyturn.envs.talk.booking.town import RESTAURANT, SLOTS, TERMS, TRAITS
from manyturn.envs.tools.calls import call_text


def ask(names: Sequence[str]) -> str:
    """A question about some slots.

    >>> ask(["area", "price"])
    'What is the area and the price range?'
    """
    return f"What is {' and '.join(f'the {SLOTS[name].noun}' for name in names)}?"


def tell(values: Mapping[str, str]) -> str:
    """Sentences that tell some values.

    >>> tell({"phone": "123-4567"})
    'The phone number is 123-4567.'
    """
    return " ".join(f"The {SLOTS[name].noun} is {value}." for name, value in values.items())


def query_text(kind: str, traits: Mapping[str, str]) -> str:
    """The call that looks for venues."""
    constraints: dict[str, Any] = {name: traits[name] for name in TRAITS[kind] if name in traits}
    if "stars" in constraints:
        constraints["stars"] = int(constraints["stars"].split()[0])
    return call_text("query_restaurants" if kind == RESTAURANT else "query_hotels", **constraints)


def book_text(kind: str, name: str, terms: Mapping[str, str]) -> str:
    """The call that books a venue."""
    arguments: dict[str, Any] = {term: terms[term] for term in TERMS[kind]}
    arguments |= {term: int(arguments[term].split()[0]) for term in ("nights", "people") if term in arguments}
    return call_text("book_table" if kind == RESTAURANT else "book_room", name=name, **arguments)
