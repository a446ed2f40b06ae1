"""Dialogue acts and what they are about: the small language that users and agents exchange by rules.

An agent's text is read sentence by sentence. Slots are found by the words that name them, values by the values that a
slot can have or by its pattern; nothing else is understood, so nothing else can be answered.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

LONGEST = 4_000  # characters of a text that a user reads

REQUEST, INFORM, CONFIRM, NOTHING_FOUND, MORE, BYE = "request", "inform", "confirm", "nothing", "more", "bye"

_SENTENCE = re.compile(r"[^?!\n;.]*(?:\.(?=\S)[^?!\n;.]*)*[?!\n;.]?")
_ASKS = re.compile(
    r"^\W*(?:so,? |and |ok,? |okay,? |sorry,? |please,? )*"
    r"(?:what|which|who|whose|where|when|how (?:many|much|long|old)"
    r"|(?:could|can|would|may) (?:you|i) (?:please |also |kindly )*"
    r"(?:tell|give|provide|share|confirm|have|know|get|ask)"
    r"|(?:tell|give|provide|share|name|state|confirm)|i (?:will |also |still )*need)\b"
)
_YES_NO = re.compile(
    r"\b(?:shall|should|may|can|could) i\b|\bis (?:that|this|it) (?:right|correct|ok|okay|fine)\b"
    r"|\bdo you (?:confirm|agree|want me)\b|\b(?:confirm|correct|right|go ahead|proceed|yes/no)\b"
)
_NOTHING = re.compile(
    r"\bthere (?:is|are|was|were) no\b|\b(?:nothing|none|no (?:match|matches|results?|availability|\w+ (?:found|left))"
    r"|not available|unavailable|fully booked|sold out|could ?n[o']t find|cannot find|can't find)\b"
)
_MORE = re.compile(
    r"\b(?:(?:any|some)thing else|what else|how (?:can|may) i help|tell me more|more details|any other)\b"
)
_BYE = re.compile(r"\b(?:good ?bye|bye|have a (?:nice|good|great|lovely) (?:day|evening|night|trip|stay|meal))\b")


@dataclass(frozen=True)
class Slot:
    """One thing that a dialogue can be about.

    Args:
        name: its key in goals.
        words: how people name it, the first of them in users' utterances.
        values: all values that it can have, if they can be listed.
        pattern: regular expression of its values, where they cannot.
    """

    name: str
    words: tuple[str, ...]
    values: tuple[str, ...] = ()
    pattern: str | None = None

    @property
    def noun(self) -> str:
        return self.words[0]

    @cached_property
    def named(self) -> re.Pattern[str]:
        return _any_of(self.words)

    @cached_property
    def valued(self) -> re.Pattern[str] | None:
        if self.pattern is not None:
            return re.compile(rf"(?<!\w)(?:{self.pattern})(?!\w)", re.IGNORECASE)
        return _any_of(self.values) if self.values else None


class DialogueAct(NamedTuple):
    """One dialogue act; ``slot`` and ``value`` are empty where an act has none."""

    kind: str
    slot: str = ""
    value: str = ""


def understand(text: str, slots: Sequence[Slot], facts: Mapping[str, str]) -> list[DialogueAct]:
    """The acts in an agent's text, in order, each once.

    Args:
        text: anything; what follows its first 4,000 characters is not read.
        slots: what can be understood.
        facts: values that the listener knows, found in a text even where a slot lists no values.
    """
    acts: dict[DialogueAct, None] = {}
    for sentence in _sentences(text[:LONGEST]):
        acts.update(dict.fromkeys(_acts_of(sentence, slots, facts)))
    return list(acts)


def _acts_of(sentence: str, slots: Sequence[Slot], facts: Mapping[str, str]) -> Iterator[DialogueAct]:
    lowered = sentence.lower()
    asks, asks_yes = sentence.endswith("?") or bool(_ASKS.search(lowered)), bool(_YES_NO.search(lowered))
    if _NOTHING.search(lowered) and not asks:  # what is not there is not what the agent says is wanted
        yield DialogueAct(NOTHING_FOUND)
        return
    about = False
    for slot in slots:
        values = _values_in(sentence, slot, facts)
        for value in values:
            about = True
            yield DialogueAct(CONFIRM if asks else INFORM, slot.name, value)
        if asks and not values and slot.named.search(sentence):
            about = True
            yield DialogueAct(REQUEST, slot.name)
    if asks and asks_yes and not about:
        yield DialogueAct(CONFIRM)
    if _MORE.search(lowered):
        yield DialogueAct(MORE)
    if _BYE.search(lowered):
        yield DialogueAct(BYE)


def _values_in(sentence: str, slot: Slot, facts: Mapping[str, str]) -> list[str]:
    values = [match.group() for match in slot.valued.finditer(sentence)] if slot.valued else []
    fact = facts.get(slot.name, "")
    if fact and fact.lower() not in map(str.lower, values) and _any_of((fact,)).search(sentence):
        values.append(fact)
    return list(dict.fromkeys(values))


def _sentences(text: str) -> Iterator[str]:
    return (match.group().strip() for match in _SENTENCE.finditer(text) if match.group().strip())


@lru_cache(maxsize=4096)
def _any_of(words: tuple[str, ...]) -> re.Pattern[str]:
    """The longest words first, so that none hides behind its beginning."""
    listed = sorted((re.escape(word.lower()) for word in words), key=lambda word: (-len(word), word))
    return re.compile(rf"(?<!\w)(?:{'|'.join(listed)})(?!\w)", re.IGNORECASE)
