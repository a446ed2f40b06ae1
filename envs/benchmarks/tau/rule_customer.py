"""A customer by rules, made of a task's own text and reference solution; it is no language model and reads keywords.

It opens with what the task's text says it wants, without ids. Asked for something, it tells what it knows of it. Asked
to agree, it agrees, unless an id in the question is none of its own: then, once, it says again what it wants. It leaves
when the reference solution's changes are made and it was told what it must be told, or when it was handed over to a
person, and gives up after 8 turns that brought nothing. Scores with it are not those with the benchmark's customer.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from pydantic import Field

from manyturn.envs.contract.options.options import Options
from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.users.protocol import NOTHING, Heard, User

LONGEST = 4000  # characters of the agent's text that are read

_ID = re.compile(
    r"#W\d+|\b(?:credit_card|gift_card|paypal|certificate)_\d+\b|\b[a-z]+_[a-z]+_\d{4}\b|\b\d{10}\b|\bHAT\d{3}\b"
)
SENTENCE = re.compile(r"(?<=[.!?;\n])\s+")
AGREES = re.compile(
    r"\b(?:confirm|yes/no|\(yes|proceed|go ahead|is (?:that|this) (?:right|correct|ok|okay)|would you like me to"
    r"|shall i|do you (?:agree|want me))\b",
    re.IGNORECASE,
)
ASKS = re.compile(r"\?|\b(?:please|provide|need|tell|give)\b", re.IGNORECASE)
_FORMS = ((r"\b((?:to|for|from|with|by|of|give|send|tell|help|let|refund|allow|unsubscribe)s?) you\b", r"\1 me"),)
_FORMS += ((r"\byou are\b", "I am"), (r"\byou're\b", "I'm"), (r"\byou'd\b", "I'd"), (r"\byou've\b", "I've"))
_FORMS += ((r"\byou were\b", "I was"), (r"\byourself\b", "myself"), (r"\byours\b", "mine"), (r"\byour\b", "my"))
_FORMS += ((r"\byou\b", "I"),)

# What can be asked for: words of the question -> argument names of the tools that take it, and how it is told.
_TOPICS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    (r"user ?id|customer ?id|account id", ("user_id",), "My user id is {}."),
    (r"e-?mail", ("email",), "My e-mail address is {}."),
    (r"name|verify|identi|authenticat|zip|postal", ("first_name", "last_name", "zip"), "I am {}."),
    (r"order", ("order_id",), "The order is {}."),
    (r"reservation|booking|confirmation (?:number|code)", ("reservation_id",), "The reservation is {}."),
    (r"reason|why", ("reason",), "The reason: {}."),
    (r"pay|refund|card|charge", ("payment_method_id", "payment_id", "payment_methods"), "Please use {}."),
    (r"address|street|city|state", ("address1", "address2", "city", "state", "country", "zip"), "The address: {}."),
    (r"which item|what item|items?\b|product", ("item_ids", "new_item_ids"), ""),
    (r"cabin|class", ("cabin",), "In {}."),
    (r"flights?\b|from|to where|airport|origin|destination", ("origin", "destination", "flights"), "It is about {}."),
    (r"date|when|day", ("date", "flights"), "It is about {}."),
    (r"passenger|travell?er|birth", ("passengers",), "The passengers: {}."),
    (r"bag|luggage|suitcase", ("total_baggages",), "Bags in all: {}."),
    (r"insurance", ("insurance",), "Insurance: {}."),
    (r"one.?way|round.?trip", ("flight_type",), "{}."),
)


class CustomerOptions(Options):
    """The patience of the customer."""

    patience: int = Field(default=8, ge=1)
    """Turns that bring nothing after which it gives up."""


class Customer(User):
    """Plays the customer of a task by rules.

    Args:
        options: its patience.
        writes: names of the tools that change something; it knows what only they take.
    """

    def __init__(self, options: CustomerOptions, writes: frozenset[str]):
        self.options, self._writes = options, writes
        self.name = "agenda" if options == CustomerOptions() else f"agenda(patience={options.patience})"

    def begin(self, task: Task, rng: np.random.Generator) -> str:
        self._wish, self._own, self._texts = _understood(task)
        self._facts = _facts(task.params["gold"], self._texts, self._writes)
        self._changes = sum(call["name"] in self._writes for call in task.params["gold"])
        self._needs = len(task.params["say"])
        self._stale, self._done, self._corrected = 0, 0, False
        return f"Hello. {self._wish}"

    def hear(self, text: str, cue: Mapping[str, Any] = NOTHING) -> Heard:
        text, done = text[:LONGEST], int(cue.get("done", 0))
        moved, self._done = done > self._done, max(done, self._done)
        if cue.get("transferred") or (self._done >= self._changes and not self._waits(cue)):
            return Heard("Thank you, that is all. Goodbye.", done=True)
        answers = list(self._answers(text))
        useful = moved or bool(answers)
        self._stale = 0 if useful else self._stale + 1
        if self._stale >= self.options.patience:
            return Heard("This does not help me. Goodbye.", done=True)
        return Heard(" ".join(answers) or (f"Thank you. There is more: {self._wish}" if moved else self._wish))

    def _waits(self, cue: Mapping[str, Any]) -> bool:
        """True if the customer still waits for an answer."""
        return int(cue.get("told", 0)) < self._needs or not (self._changes or self._needs)

    def _answers(self, text: str) -> Iterator[str]:
        foreign = [one for one in _ID.findall(text) if one not in self._own]
        if AGREES.search(text):
            if foreign and not self._corrected:
                self._corrected = True
                yield f"No, not {foreign[0]}. {self._wish}"
                return
            yield "Yes, please go ahead."
            return
        if not ASKS.search(text):
            return
        for pattern, names, phrase in _TOPICS:
            if re.search(rf"\b(?:{pattern})", text, re.IGNORECASE):
                facts = [value for name in names for value in self._facts.get(name, ())]
                if phrase and facts:
                    yield phrase.format(", ".join(dict.fromkeys(facts)))

    def save(self) -> Any:
        return [self._stale, self._done, self._corrected]

    def load(self, state: Any) -> None:
        self._stale, self._done, self._corrected = state


def first_person(text: str) -> str:
    """A task's text, which says ``you`` to whoever plays the customer, as the customer says it.

    >>> first_person("You want to return your lamp.")
    'I want to return my lamp.'
    """
    for pattern, form in _FORMS:
        text = re.sub(pattern, form, text, flags=re.IGNORECASE)
    return text


def _understood(task: Task) -> tuple[str, frozenset[str], str]:
    """The customer's wish in its words, the ids that are its own, and all of the task's text."""
    scenario = task.params["scenario"]
    if isinstance(scenario, str):
        texts, wish = scenario, scenario
    else:
        texts = " ".join(str(part) for part in scenario.values() if part)
        wish = scenario["reason_for_call"]
    own = frozenset(_ID.findall(texts)) | frozenset(_ID.findall(repr(task.params["gold"])))
    sentences = (
        one for one in SENTENCE.split(wish) if not re.search(r"user id|^you are [A-Z]|name is", one, re.IGNORECASE)
    )
    plain = re.sub(r"\s+([.,;])", r"\1", _ID.sub("", " ".join(sentences)))
    return first_person(re.sub(r"\s+", " ", plain)).strip() or "I need help.", own, texts


def _facts(gold: Iterable[Mapping[str, Any]], texts: str, writes: frozenset[str]) -> dict[str, list[str]]:
    """Argument name -> what the customer knows of it: what a change takes, and what identifies it."""
    facts: dict[str, list[str]] = {}
    for call in gold:
        for name, value in call["arguments"].items():
            identifies = name in ("first_name", "last_name", "zip", "email", "order_id", "reservation_id", "user_id")
            words = _words(value)
            if call["name"] in writes or (identifies and (name != "order_id" or words in texts)):
                values = facts.setdefault(name, [])
                values += [words] if words and words not in values else []
    for name, pattern in (("user_id", r"\b[a-z]+_[a-z]+_\d{4}\b"), ("order_id", r"#W\d+"), ("zip", r"\b\d{5}\b")):
        values = facts.setdefault(name, [])
        values += [one for one in re.findall(pattern, texts) if one not in values]
    return facts


_WORDS: Mapping[type, Callable[[Any], str]] = {
    dict: lambda value: " ".join(_words(part) for part in value.values()),
    list: lambda value: ", ".join(_words(part) for part in value),
}


def _words(value: Any) -> str:
    return _WORDS.get(type(value), str)(value)
