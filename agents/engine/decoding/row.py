"""One reply that is being drawn."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from manyturn.agents.text.choice_decoding import Allowed, Choices, TrieNode
from manyturn.agents.text.command_tree import CommandTree


@dataclass(slots=True, eq=False)
class Row:
    """One reply to draw, and how far it is.

    Attributes:
        prompt: token ids, at least one.
        noise: one number in [0, 1) for each token that may be drawn; its length limits the reply.
        temperature: divides the logits; 0 takes the most likely token.
        choices: the replies that are possible; None: any.
        pages: those of the row's keys and values, enough for the prompt and the longest reply.
        cached: tokens of the prompt whose keys and values were there before.
        computed: tokens of prompt and reply whose keys and values are there.
        ids, logprobs, entropies: of the T tokens that are said, drawn or forced.
    """

    prompt: list[int]
    noise: Sequence[float]
    temperature: float
    choices: Choices | None = None
    pages: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    cached: int = 0
    computed: int = 0
    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    entropies: list[float] = field(default_factory=list)
    _choice: TrieNode | None = None

    @property
    def allowed(self) -> Allowed | None:
        """Possible next tokens, two or more; None if any token is."""
        return None if self._choice is None else self._choice.allowed

    @property
    def tree(self) -> CommandTree | None:
        """The commands to choose among as wholes, which are read after the prompt; None if tokens are drawn."""
        return None if self.choices is None or self.ids else self.choices.tree

    @property
    def is_full(self) -> bool:
        """True if no token can follow: the reply is one of the choices, or at its limit of tokens."""
        return self.allowed == () or len(self.ids) == len(self.noise)

    @property
    def length(self) -> int:
        """Tokens of the prompt and of the reply so far, or of the commands that are to be read."""
        return len(self.prompt) + (len(self.ids) if self.tree is None else len(self.tree.ids))

    @property
    def most(self) -> int:
        """Tokens of the prompt and of the longest reply, or of all commands."""
        commands = None if self.choices is None else self.choices.tree
        return len(self.prompt) + max(len(self.noise), 0 if commands is None else len(commands.ids))

    def tokens(self, start: int, end: int) -> list[int]:
        """Some of the tokens of prompt and reply, or of prompt and commands."""
        read, after = len(self.prompt), self.ids if self.tree is None else self.tree.ids
        if start >= read:
            return after[start - read : end - read]
        return self.prompt[start:end] + after[: max(0, end - read)]

    def begin(self, pages: Sequence[int], cached: int) -> None:
        """Draw from the first token that is not forced, with the keys and values of ``cached`` tokens at hand."""
        self.pages = np.array(pages, np.int64)
        self.cached = self.computed = cached
        self.ids, self.logprobs, self.entropies = [], [], []
        self._choice = None if self.choices is None or self.choices.unit == "command" else self.choices.first
        self._say_forced()

    def say_all(self, ids: list[int], logprobs: list[float], entropies: list[float]) -> None:
        """Say a whole command. Only the prompt counts as computed from now on: what is after it are all commands."""
        self.ids, self.logprobs, self.entropies = ids, logprobs, entropies
        self.computed = len(self.prompt)

    def say(self, token: int, logprob: float, entropy: float) -> None:
        """Add a token that was drawn, and those that can alone follow."""
        self._add(token, logprob, entropy)
        self._say_forced()

    def _say_forced(self) -> None:
        while self._choice is not None and len(self._choice.allowed) == 1:
            self._add(self._choice.allowed[0], 0.0, 0.0)

    def _add(self, token: int, logprob: float, entropy: float) -> None:
        self.ids.append(token)
        self.logprobs.append(logprob)
        self.entropies.append(entropy)
        if self._choice is not None:
            self._choice = self._choice.after(token)
