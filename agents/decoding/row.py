"""One reply that is being drawn."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np


@dataclass(slots=True, eq=False)
class Row:
    """One reply to draw, and how far it is.

    Attributes:
        prompt: token ids, at least one.
        noise: one number in [0, 1) for each token that may be drawn; its length limits the reply.
        temperature: divides the logits; 0 takes the most likely token.
        pages: those of the row's keys and values, enough for the prompt and the longest reply.
        known: tokens of the prompt whose keys and values were there before.
        computed: tokens of prompt and reply whose keys and values are there.
        ids, logprobs, entropies: of the T tokens that are drawn.
    """

    prompt: list[int]
    noise: Sequence[float]
    temperature: float
    pages: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    known: int = 0
    computed: int = 0
    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    entropies: list[float] = field(default_factory=list)

    @property
    def length(self) -> int:
        """Tokens of the prompt and of the reply so far."""
        return len(self.prompt) + len(self.ids)

    @property
    def most(self) -> int:
        """Tokens of the prompt and of the longest reply."""
        return len(self.prompt) + len(self.noise)

    def tokens(self, start: int, end: int) -> list[int]:
        """Some of the tokens of prompt and reply."""
        read = len(self.prompt)
        if start >= read:
            return self.ids[start - read : end - read]
        return self.prompt[start:end] + self.ids[: max(0, end - read)]

    def begin(self, pages: Sequence[int], known: int) -> None:
        """Draw from the first token, with the keys and values of ``known`` tokens at hand."""
        self.pages = np.array(pages, np.int64)
        self.known = self.computed = known
        self.ids, self.logprobs, self.entropies = [], [], []
