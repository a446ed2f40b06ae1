"""Phrases of users' acts: several paraphrases each, the last ones reserved for the split without training."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

UNSEEN_SPLIT = "test_unseen"


class Phrases:
    """Paraphrases by act.

    Args:
        seen: act -> templates with ``{slot}``, ``{value}`` and ``{wish}``, for all splits but one.
        unseen: act -> templates that are said in the split ``test_unseen`` and nowhere else.

    Raises:
        ValueError: an act has no unseen paraphrase, or one that is seen too.
    """

    def __init__(self, seen: Mapping[str, Sequence[str]], unseen: Mapping[str, Sequence[str]]):
        for act in seen:
            if not unseen.get(act) or set(unseen[act]) & set(seen[act]):
                raise ValueError(f"act {act!r} needs paraphrases for {UNSEEN_SPLIT} that occur nowhere else")
        self._seen, self._unseen = seen, unseen

    def say(self, act: str, rng: np.random.Generator, unseen: bool = False, **parts: str) -> str:
        """One of the act's paraphrases."""
        templates = (self._unseen if unseen else self._seen)[act]
        return templates[int(rng.integers(len(templates)))].format(**parts)

    def but(self, seen: Mapping[str, Sequence[str]], unseen: Mapping[str, Sequence[str]]) -> "Phrases":
        """These, with the given acts in place of their own."""
        return Phrases({**self._seen, **seen}, {**self._unseen, **unseen})


AGENDA = Phrases(
    MappingProxyType(
        {
            "open": (
                "Hello, I would like {wish}.",
                "Hi, I am looking for {wish}.",
                "Good day. I need {wish}.",
                "Hello there, can you help me with {wish}?",
                "Hi! I want {wish}, please.",
                "I need some help: {wish}.",
            ),
            "next": (
                "Then I would also like {wish}.",
                "Next, I need {wish}.",
                "There is one more thing: {wish}.",
                "I want {wish} as well.",
                "I am also looking for {wish}.",
                "And then {wish}, please.",
            ),
            "inform": (
                "The {slot} should be {value}.",
                "{value} for the {slot}.",
                "As for the {slot}: {value}.",
                "For the {slot} I want {value}.",
                "My {slot} is {value}.",
                "It is {value}, the {slot}.",
            ),
            "any": (
                "I do not mind the {slot}.",
                "Any {slot} will do.",
                "The {slot} does not matter.",
                "I have no {slot} in mind.",
                "Whatever {slot} you like.",
                "I do not care about the {slot}.",
            ),
            "request": (
                "What is the {slot}?",
                "Could you tell me the {slot}?",
                "I need the {slot}, please.",
                "Please give me the {slot}.",
                "And the {slot}?",
                "May I have the {slot}?",
            ),
            "confirm": (
                "Yes, that is right.",
                "Yes, please.",
                "Exactly.",
                "Right, go ahead.",
                "Yes, correct.",
                "That is what I want, yes.",
            ),
            "negate": (
                "No, not {value}.",
                "No, {value} is wrong.",
                "That is not right: not {value}.",
                "Sorry, no, I did not say {value}.",
                "{value} is not what I want.",
                "No, {value} will not do.",
            ),
            "repeat": (
                "I said so before: the {slot} is {value}.",
                "Again, {value} for the {slot}.",
                "Still {value} for the {slot}.",
                "As before, {value}, the {slot}.",
                "Once more: the {slot} is {value}.",
                "{value} for the {slot}, as I said.",
            ),
            "again": (
                "Sorry, I do not follow.",
                "I do not understand.",
                "Could you say that in other words?",
                "Pardon?",
                "What do you mean?",
                "I am not sure what you want from me.",
            ),
            "bye": (
                "Thank you, that is all. Goodbye.",
                "Great, thanks. Bye.",
                "That is everything. Bye.",
                "Thanks for your help, goodbye.",
                "Perfect, I am done. Goodbye.",
                "All is settled then. Bye.",
            ),
            "leave": (
                "This leads nowhere. Goodbye.",
                "I will try elsewhere. Bye.",
                "I am giving up. Bye.",
                "I have no more time for this. Goodbye.",
                "Never mind. Bye.",
                "That does not help me. Goodbye.",
            ),
        }
    ),
    MappingProxyType(
        {
            "open": (
                "Morning! What I am after is {wish}.",
                "Do you arrange {wish}?",
                "Is this the right place for {wish}?",
            ),
            "next": (
                "That is not all, I am also after {wish}.",
                "While we are at it, {wish}.",
                "And one more request, {wish}.",
            ),
            "inform": (
                "{slot}: {value}, if possible.",
                "Make the {slot} {value}.",
                "I would go for {value} as {slot}.",
            ),
            "any": ("You choose the {slot}.", "The {slot} is all the same to me.", "No preference as to {slot}."),
            "request": ("I forgot to ask for the {slot}.", "Which {slot} is it?", "The {slot} would be good to know."),
            "confirm": ("Sure, do that.", "Absolutely.", "Yep, sounds good."),
            "negate": ("You got me wrong, {value} it is not.", "Not {value}, I am afraid.", "Anything but {value}."),
            "repeat": (
                "You asked that already: {value} as {slot}.",
                "My {slot} has not changed: {value}.",
                "{slot} {value}.",
            ),
            "again": ("You lost me there.", "Come again?", "That went over my head."),
            "bye": ("Lovely, nothing more from me. Bye.", "I am all set, so long. Bye.", "Wonderful. See you."),
            "leave": ("Enough of this. Bye.", "I had hoped for more. Goodbye.", "Let us leave it at that. Bye."),
        }
    ),
)
