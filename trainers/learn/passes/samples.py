"""From episodes to what the learner computes: one sequence for each branch of a ledger, every token once.

Numbers of tokens come in two forms: ``Rows``, one (T,) tensor for each sample, and one array over all tokens of
replies in the samples, in the order of a batch's token columns. ``at_replies`` and ``on_replies`` convert them.
"""

from collections.abc import Mapping, Sequence, Sized
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from manyturn.agents.play.episode import Episode
from manyturn.agents.text.command_tree import CommandTree, tree_of
from manyturn.agents.tokens.ledger import Branch

Rows = list[torch.Tensor]


@dataclass(frozen=True)
class Sample:
    """A branch of T tokens.

    Attributes:
        episode: number of the episode among those of the step.
        ids: (T,) token ids.
        reply_mask: (T,) True where the token is of a reply.
        engine_logprob: (T,) log-probability that the engine drew the token with, 0 elsewhere.
        reply: (T,) number of the turn that the token belongs to in its episode, -1 elsewhere.
        turns: how many turns the episode has, in all its branches.
        allowed: place of a token that was limited -> the tokens that were possible there.
        commands: place of a reply's first token -> the tree of the replies that it was chosen among as a whole.
    """

    episode: int
    ids: np.ndarray
    reply_mask: np.ndarray
    engine_logprob: np.ndarray
    reply: np.ndarray
    turns: int = 1
    allowed: Mapping[int, Sequence[int]] = field(default_factory=dict)
    commands: Mapping[int, CommandTree] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def listed(self) -> int:
        """Tokens that are read besides its own: those of the commands that its replies were chosen among."""
        return sum(len(tree.ids) for tree in self.commands.values())


def samples_of(episodes: Sequence[Episode]) -> list[Sample]:
    """The sequences of E episodes. Their replies, one after the other, are in the order of turns."""
    samples = []
    for number, episode in enumerate(episodes):
        ledger = episode.ledger
        assert ledger is not None, "only episodes with a token ledger can be learnt from"
        for index, branch in enumerate(ledger.branches):
            reply = np.full(len(branch.ids), -1)
            for turn, span in enumerate(ledger.spans):
                if span.branch == index:
                    reply[span.start : span.end] = turn
            ids, mask, logprobs = np.array(branch.ids), np.array(branch.reply_mask), np.array(branch.logprobs)
            samples.append(
                Sample(number, ids, mask, logprobs, reply, len(ledger.spans), branch.allowed, trees_of(branch))
            )
    return samples


def trees_of(branch: Branch) -> dict[int, CommandTree]:
    """Place of a reply's first token -> the tree of what it was chosen among."""
    return {place: tree_of(commands) for place, commands in branch.commands.items()}


def at_replies(samples: Sequence[Sample], rows: Sequence[Any]) -> np.ndarray:
    """The values of one (T,) row for each sample at the tokens of replies: (N,) over all samples."""
    return np.concatenate([np.asarray(row)[sample.reply_mask] for sample, row in zip(samples, rows, strict=True)])


def on_replies(samples: Sequence[Sample], values_T: np.ndarray, elsewhere: float = 0.0) -> Rows:
    """The inverse of ``at_replies``: one (T,) row for each sample."""
    counts = [int(sample.reply_mask.sum()) for sample in samples]
    if sum(counts) != len(values_T):
        raise ValueError(f"{len(values_T)} values for {sum(counts)} tokens of replies: give one for each")
    rows = []
    for sample, values in zip(samples, np.split(values_T, np.cumsum(counts)[:-1]), strict=True):
        row = np.full(len(sample), elsewhere)
        row[sample.reply_mask] = values
        rows.append(torch.from_numpy(row).float())
    return rows


def padded(rows: Sequence[torch.Tensor], padding: float = 0) -> torch.Tensor:
    """Rows of different lengths as one tensor, padded on the right."""
    return torch.nn.utils.rnn.pad_sequence(list(rows), batch_first=True, padding_value=padding)


def micro_batches(samples: Sequence[Sized], tokens: int) -> list[list[int]]:
    """Indices of samples in groups of like length, each of at most ``tokens`` tokens after padding."""
    order = sorted(range(len(samples)), key=lambda i: (len(samples[i]), i))
    groups: list[list[int]] = [[]]
    for i in order:
        if groups[-1] and len(samples[i]) * (len(groups[-1]) + 1) > tokens:
            groups.append([])
        groups[-1].append(i)
    return groups
