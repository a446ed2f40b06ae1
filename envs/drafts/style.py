"""Styles of a short message: a choice for each slot, and the text that they give."""

import itertools
from collections.abc import Mapping, Sequence

Style = Mapping[str, str]
"""Slot -> the choice in it."""
Facts = Mapping[str, str]
"""``group``, ``name``, ``thing``, ``day`` and ``hour`` of an item."""
DAYS = {"Monday": "Mon", "Tuesday": "Tue", "Wednesday": "Wed", "Thursday": "Thu", "Friday": "Fri", "Saturday": "Sat"}
HOURS = {
    **{"1": "one", "2": "two", "3": "three", "4": "four", "5": "five", "6": "six"},
    **{"7": "seven", "8": "eight", "9": "nine", "10": "ten", "11": "eleven", "12": "twelve"},
}
SLOTS = {
    "greeting": ("Dear", "Hi", "Hello", "none"),
    "order": ("day", "hour"),
    "day": ("long", "short"),
    "hour": ("digits", "words"),
    "closing": ("Regards", "Thanks", "Cheers", "none"),
}
"""Slot -> its choices. A user reads a draft in this order."""
DEFAULT = {slot: choices[0] for slot, choices in SLOTS.items()}


def message(facts: Facts, style: Style) -> str:
    """A message in a style.

    >>> facts = {"name": "Mira", "thing": "meeting", "day": "Tuesday", "hour": "3"}
    >>> message(facts, DEFAULT)
    'Dear Mira, the meeting is on Tuesday at 3. Regards'
    >>> message(facts, {"greeting": "none", "order": "hour", "day": "short", "hour": "words", "closing": "none"})
    'Mira, the meeting is at three on Tue.'
    """
    greeting = "" if style["greeting"] == "none" else f"{style['greeting']} "
    closing = "" if style["closing"] == "none" else f" {style['closing']}"
    day = facts["day"] if style["day"] == "long" else DAYS[facts["day"]]
    hour = facts["hour"] if style["hour"] == "digits" else HOURS[facts["hour"]]
    when = f"on {day} at {hour}" if style["order"] == "day" else f"at {hour} on {day}"
    return f"{greeting}{facts['name']}, the {facts['thing']} is {when}.{closing}"


def styles(slots: Sequence[str]) -> list[dict[str, str]]:
    """All styles that differ in some slots only; the others have their default."""
    return [
        DEFAULT | dict(zip(slots, choices, strict=True))
        for choices in itertools.product(*map(SLOTS.__getitem__, slots))
    ]


def style_of(facts: Facts, text: str, slots: Sequence[str]) -> dict[str, str] | None:
    """The style of a message about these facts, whatever its blanks and capitals; None for any other text."""
    given = " ".join(text.lower().split())
    return next((style for style in styles(slots) if message(facts, style).lower() == given), None)


def word_distance(one: str, other: str) -> int:
    """Words to insert, delete or replace between two texts (Levenshtein).

    >>> word_distance("Hi Mira, lunch is late.", "Mira, lunch is at three.")
    3
    """
    left, right = one.split(), other.split()
    row = list(range(len(right) + 1))
    for number, word in enumerate(left, 1):
        before, row[0] = row[0], number
        for place, against in enumerate(right, 1):
            before, row[place] = row[place], min(row[place] + 1, row[place - 1] + 1, before + (word != against))
    return row[-1]
