"""Things with traits, questions about them, and what an answer rules out."""

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

_LONGEST = 2_000  # characters of a question that are read


@dataclass(frozen=True)
class Trait:
    """Questions that can be asked.

    Args:
        name: its key.
        question: how it is asked in full.
        words: by which a question is known to be about it.
    """

    name: str
    question: str
    words: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """Traits of each thing: True, False, or None where the answer is unknown."""

    traits: tuple[Trait, ...]
    rows: Mapping[str, Mapping[str, bool | None]]

    @cached_property
    def _words(self) -> re.Pattern[str]:
        words = sorted(self._trait_of, key=lambda word: (-len(word), word))
        return re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, words))})(?![\w-])")

    @cached_property
    def _trait_of(self) -> dict[str, Trait]:
        return {word: trait for trait in self.traits for word in trait.words}

    @cached_property
    def _questions(self) -> dict[str, Trait]:
        return {trait.question.lower(): trait for trait in self.traits}

    def traits_in(self, text: str) -> list[Trait]:
        """The traits that a question is about, each once: by its whole wording, or by the words in it."""
        text = " ".join(text[:_LONGEST].lower().split())
        if text in self._questions:
            return [self._questions[text]]
        return list(dict.fromkeys(self._trait_of[word] for word in self._words.findall(text)))

    def fitting(self, names: Iterable[str], trait: str, answer: bool) -> list[str]:
        """Things that an answer leaves; one with an unknown trait stays."""
        return [name for name in names if self.rows[name][trait] in (answer, None)]

    def best_question(self, names: Sequence[str], used: Collection[str] = ()) -> Trait | None:
        """The trait whose answer is expected to tell most, or None if no trait that was not asked tells them apart."""
        bits = {trait: self._bits(names, trait.name) for trait in self.traits if trait.name not in used}
        best = max(bits, key=lambda trait: bits[trait], default=None)
        return best if best is not None and bits[best] > 0 else None

    def told_apart(self, names: Sequence[str]) -> bool:
        """True if questions can single out each of them."""
        return all(
            any({self.rows[one][t.name], self.rows[two][t.name]} == {True, False} for t in self.traits)
            for place, one in enumerate(names)
            for two in names[:place]
        )

    def _bits(self, names: Sequence[str], trait: str) -> float:
        """Expected information of the answer, in bits, all names being equally likely."""
        yes, no = (len(self.fitting(names, trait, answer=answer)) for answer in (True, False))
        surely_yes, surely_no = len(names) - no, len(names) - yes
        answers = [(count, left) for count, left in ((surely_yes, yes), (surely_no, no)) if count]
        return sum(count / len(names) * math.log2(len(names) / left) for count, left in answers)
