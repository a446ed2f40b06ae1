"""Mood from 0 to 100 and the effect of words on it: the shape of SAGE's emotion score, by rules.

After Zhang et al. 2025, "Sentient Agent as a Judge" (arXiv 2505.02847): it starts at 40, changes by at most 10 a turn,
and the talk ends at 100, below 10, or after ten turns. There a language model feels; here a lexicon decides, so that
words can be learnt but piling them up does not pay: only one kind of support counts in a turn, and only together with
what it is about; each cue pays once; and length, repetition, parroting and several topics cost.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from manyturn.envs.talk.support.cue_lexicon import DISMISS, cues_in, topics_in, words_of

START, BEST, WORST, STEP = 40, 100, 10, 10
_MOST_WORDS = 40
_PARROT = 6  # words in a row that the other has just said
_READ = 4_000  # characters

# What a reaction is worth; the first that fits is taken.
CHANGES: Mapping[str, int] = {
    "taboo": -10,
    "dismissed": -7,
    "flooded": -7,
    "parroted": -6,
    "scattered": -7,
    "repeated": -5,
    "unmoved": -2,
    "missed": -3,
    "helped": 4,
    "met": 10,
}


class Reaction(NamedTuple):
    """Reaction to a text, and its effect on the mood before the limits."""

    kind: str
    change: int


class Feelings:
    """The inner state of who seeks support.

    Args:
        need: what helps: listen, advise or normalise.
        matter: the topic that it is about.
        taboo: the topic that must not be touched.
    """

    def __init__(self, need: str, matter: str, taboo: str):
        self.need, self.matter, self.taboo = need, matter, taboo
        self.mood = START
        self.used: list[str] = []

    def hear(self, text: str, previous: str) -> Reaction:
        """Change the mood.

        Args:
            text: what the supporter says.
            previous: what the other has said just before.
        """
        kind = self._kind(words_of(text[:_READ]), words_of(previous[:_READ]))
        change = max(-STEP, min(STEP, CHANGES[kind]))
        before = self.mood
        self.mood = max(0, min(BEST, self.mood + change))
        return Reaction(kind, self.mood - before)

    def _kind(self, words: list[str], previous: list[str]) -> str:
        topics, cues = topics_in(words), cues_in(words)
        all_cues = set().union(*cues.values())
        fresh = all_cues - set(self.used)
        self.used += sorted(fresh)
        if self.taboo in topics:
            return "taboo"
        if DISMISS in cues:
            return "dismissed"
        if len(words) > _MOST_WORDS or len(topics) > 2 or len(all_cues) > 2:
            return "flooded"
        if _shares_run(words, previous, _PARROT):
            return "parroted"
        if len(cues) > 1:
            return "scattered"
        if not cues or not topics:
            return "unmoved"
        if not fresh:
            return "repeated"
        if self.need not in cues:
            return "missed"
        return "met" if topics == {self.matter} else "helped"

    def save(self) -> Any:
        return [self.mood, self.used]

    def load(self, state: Any) -> None:
        self.mood, self.used = state


def _shares_run(one: list[str], two: list[str], length: int) -> bool:
    runs = {tuple(two[place : place + length]) for place in range(len(two) - length + 1)}
    return any(tuple(one[place : place + length]) in runs for place in range(len(one) - length + 1))
