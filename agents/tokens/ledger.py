"""The token ledger: the only truth about what a policy saw and said, or several in one episode.

Prompts and replies are kept as the ids that were computed with; text is a view of them and is never encoded again.
While each prompt extends what came before, an episode is one sequence. Where a context edits history, a new branch
begins; nothing is re-tokenised in silence.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from manyturn.agents.tokens.usage import NOTHING, Spent
from manyturn.envs.contract.env.roles import ONE_ROLE

Commands = tuple[tuple[int, ...], ...]
"""Replies that a whole one was chosen among, as token ids."""

ON_PURPOSE = -1  # version of a reply that a demonstrator got wrong on purpose, from which nothing is learnt


@dataclass
class Branch:
    """A sequence that was computed in one piece: ``ids``, and for each of them whether it is of a reply.

    Attributes:
        role: who said it, in an episode of several roles.
        logprobs: the engine's log-probability of each reply token, else 0.
        entropies: the entropy that each reply token was drawn from, in nats; NaN where unknown.
        allowed: place of a token that was limited -> the tokens that were possible there, the smallest first. One that
            is the only one was forced.
        commands: place of a reply's first token -> the replies that it was chosen among as a whole. Log-probabilities
            and entropies of its tokens are those of that choice.
    """

    ids: list[int] = field(default_factory=list)
    reply_mask: list[bool] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    entropies: list[float] = field(default_factory=list)
    role: str = ONE_ROLE
    allowed: dict[int, tuple[int, ...]] = field(default_factory=dict)
    commands: dict[int, Commands] = field(default_factory=dict)

    def limits(self, start: int, end: int) -> "Limits":
        """The limits of a reply at these places."""
        allowed = [self.allowed[place] for place in range(start, end) if place in self.allowed]
        return Limits(allowed, self.commands.get(start, ()))


class Limits(NamedTuple):
    """The limits that a reply of T tokens was drawn within.

    Attributes:
        allowed: tokens that were possible at each of its places; empty where tokens were not limited one by one.
        commands: replies that it was chosen among as a whole; empty where it was not.
    """

    allowed: Sequence[tuple[int, ...]] = ()
    commands: Commands = ()


NO_LIMITS = Limits()


def commands_to_plain(branch: Branch) -> list[Any]:
    """The commands of a branch as JSON values."""
    return [[place, [list(ids) for ids in commands]] for place, commands in branch.commands.items()]


def commands_from_plain(plain: Iterable[Any]) -> dict[int, Commands]:
    """Inverse of ``commands_to_plain``."""
    return {place: tuple(map(tuple, commands)) for place, commands in plain}


@dataclass(frozen=True, slots=True)
class Span:
    """Position of a turn's reply: ``branches[branch].ids[start:end]``, drawn by the weights of ``version``."""

    branch: int
    start: int
    end: int
    version: int


@dataclass(frozen=True, slots=True)
class LastPrompt:
    """An unanswered prompt, since a limit had cut the episode off: its ids, and the role that was to reply."""

    ids: Sequence[int]
    role: str = ONE_ROLE


@dataclass(frozen=True, slots=True)
class AdvisedPrompt:
    """A prompt with a text that the policy did not see: as much of its own as is the same, and the rest.

    Attributes:
        common: tokens of the policy's prompt with which it begins.
        rest: ids after these.
    """

    common: int
    rest: Sequence[int]

    @classmethod
    def of(cls, advised: Sequence[int], prompt: Sequence[int]) -> "AdvisedPrompt":
        """Of both prompts.

        >>> AdvisedPrompt.of([1, 2, 7, 3], [1, 2, 3])
        AdvisedPrompt(common=2, rest=(7, 3))
        """
        pairs = zip(advised, prompt, strict=False)
        common = next((n for n, (one, other) in enumerate(pairs) if one != other), min(len(advised), len(prompt)))
        return cls(common, tuple(advised[common:]))

    def ids(self, prompt: Sequence[int]) -> list[int]:
        """All of its ids, given the policy's own prompt."""
        return [*prompt[: self.common], *self.rest]


@dataclass(frozen=True, slots=True)
class Label:
    """The reply that an expert would have given at a turn where another one was given.

    Attributes:
        ids: T tokens.
        allowed: possible tokens at each of them; empty if all were.
    """

    ids: Sequence[int]
    allowed: Sequence[tuple[int, ...]] = ()


@dataclass
class Ledger:
    """All tokens of an episode of K turns.

    Attributes:
        branches: the sequences.
        spans: K reply positions, in order of turns.
        unanswered: what would have been the next prompt of an episode that a limit cut off, if it is known.
        advised: number of a turn -> its prompt with a text that only a teacher reads, where there is one.
        labels: number of a turn -> the expert's reply to its prompt, where that is another than the turn's.
        plain: the same replies after prompts without a text that was added to them, where they are learnt from so.
        is_plain: the replies were drawn after other prompts than these, which had a text added.
        beside: usage of replies that were drawn for the episode, by a search, and are no part of it.
    """

    branches: list[Branch] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    unanswered: LastPrompt | None = None
    advised: dict[int, AdvisedPrompt] = field(default_factory=dict)
    labels: dict[int, Label] = field(default_factory=dict)
    plain: "Ledger | None" = None
    is_plain: bool = False
    beside: Spent = NOTHING

    def record(
        self,
        prompt_ids: Sequence[int],
        reply_ids: Sequence[int],
        logprobs: Sequence[float],
        version: int,
        entropies: Sequence[float] | None = None,
        role: str = ONE_ROLE,
        limits: Limits = NO_LIMITS,
    ) -> None:
        """Add a turn.

        Args:
            prompt_ids: everything that the policy saw at this turn.
            reply_ids: T tokens that it said.
            logprobs: T log-probabilities that the engine gave them.
            version: policy version.
            entropies: T entropies of the distributions they were drawn from, if known.
            role: whose turn it is, where there are several; each goes on with what it saw and said itself.
            limits: what was possible.
        """
        allowed = limits.allowed
        if len(logprobs) != len(reply_ids):
            raise ValueError(f"{len(reply_ids)} reply tokens but {len(logprobs)} log-probabilities")
        if entropies is None:
            entropies = [float("nan")] * len(reply_ids)
        elif len(entropies) != len(reply_ids):
            raise ValueError(f"{len(reply_ids)} reply tokens but {len(entropies)} entropies")
        if allowed and len(allowed) != len(reply_ids):
            raise ValueError(f"{len(reply_ids)} reply tokens but {len(allowed)} choices")
        number = next((i for i in reversed(range(len(self.branches))) if self.branches[i].role == role), -1)
        if number < 0 or list(prompt_ids[: len(self.branches[number].ids)]) != self.branches[number].ids:
            number = len(self.branches)
            self.branches.append(Branch(role=role))
        branch = self.branches[number]
        news = list(prompt_ids[len(branch.ids) :])
        branch.ids += news
        branch.reply_mask += [False] * len(news)
        branch.logprobs += [0.0] * len(news)
        branch.entropies += [float("nan")] * len(news)
        start = len(branch.ids)
        branch.ids += reply_ids
        branch.reply_mask += [True] * len(reply_ids)
        branch.logprobs += logprobs
        branch.entropies += entropies
        branch.allowed.update(enumerate(allowed, start))
        if limits.commands and reply_ids:
            branch.commands[start] = limits.commands
        self.spans.append(Span(number, start, len(branch.ids), version))

    def prompt(self, turn: int) -> list[int]:
        """The prompt of a turn."""
        span = self.spans[turn]
        return self.branches[span.branch].ids[: span.start]

    def reply(self, turn: int) -> list[int]:
        """The reply of a turn."""
        span = self.spans[turn]
        return self.branches[span.branch].ids[span.start : span.end]

    def reply_logprobs(self, turn: int) -> np.ndarray:
        """The engine's T log-probabilities of a turn's reply."""
        span = self.spans[turn]
        return np.array(self.branches[span.branch].logprobs[span.start : span.end])

    def reply_entropies(self, turn: int) -> np.ndarray:
        """The T entropies, in nats, that a turn's tokens were drawn from; NaN where unknown."""
        span = self.spans[turn]
        return np.array(self.branches[span.branch].entropies[span.start : span.end])

    @property
    def computed_tokens(self) -> int:
        """Tokens that a forward pass over the branches computes."""
        return sum(len(branch.ids) for branch in self.branches)
