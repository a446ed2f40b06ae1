"""From episodes to what the learner computes: one sequence for each branch of a ledger, every token once."""

from collections.abc import Sequence, Sized
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from manyturn.agents.episode import Episode

Rows = list[torch.Tensor]


@dataclass(frozen=True)
class Sample:
    """A branch of T tokens.

    Attributes:
        episode: number of the episode among those of the step.
        ids: (T,) token ids.
        said: (T,) True where the policy said the token.
        advantage: (T,) credit of the turn that the token belongs to, 0 elsewhere.
        engine_logprob: (T,) log-probability that the engine drew the token with, 0 elsewhere.
        reply: (T,) number of the turn that the token belongs to in its episode, -1 elsewhere. Left out: all that was
            said is one reply.
        turns: how many turns the episode has, in all its branches.
    """

    episode: int
    ids: np.ndarray
    said: np.ndarray
    advantage: np.ndarray
    engine_logprob: np.ndarray
    reply: np.ndarray = None  # type: ignore[assignment]  # None becomes one reply
    turns: int = 1

    def __post_init__(self) -> None:
        if self.reply is None:
            object.__setattr__(self, "reply", np.where(self.said, 0, -1))

    def __len__(self) -> int:
        return len(self.ids)


def samples_of(
    episodes: Sequence[Episode], advantage_K: np.ndarray | None = None, token_T: np.ndarray | None = None
) -> list[Sample]:
    """The sequences of E episodes. What was said in them, one after the other, is in the order of turns.

    Args:
        advantage_K: credit of all K turns, episode by episode; None gives every said token 1 (imitation).
        token_T: credit of all T reply tokens, turn by turn, where tokens of a turn differ; wins over advantage_K.
    """
    samples = []
    first = first_token = 0
    for number, episode in enumerate(episodes):
        ledger = episode.ledger
        assert ledger is not None, "only episodes with a token ledger can be learnt from"
        turns = len(ledger.spans)
        credit = np.ones(turns) if advantage_K is None else advantage_K[first : first + turns]
        first += turns
        values: list[Any] = list(credit)
        if token_T is not None:
            for place, span in enumerate(ledger.spans):
                values[place] = token_T[first_token : first_token + span.end - span.start]
                first_token += span.end - span.start
        for index, branch in enumerate(ledger.branches):
            advantage, reply = np.zeros(len(branch.ids)), np.full(len(branch.ids), -1)
            for turn, (span, value) in enumerate(zip(ledger.spans, values, strict=True)):
                if span.branch == index:
                    advantage[span.start : span.end] = value
                    reply[span.start : span.end] = turn
            ids, said, logprobs = np.array(branch.ids), np.array(branch.said), np.array(branch.logprobs)
            samples.append(Sample(number, ids, said, advantage, logprobs, reply, turns))
    return samples


def at_said(samples: Sequence[Sample], rows: Sequence[Any]) -> np.ndarray:
    """The values of one (T,) row for each sample at what was said: (N,) over all samples."""
    return np.concatenate([np.asarray(row)[sample.said] for sample, row in zip(samples, rows, strict=True)])


def on_tokens(samples: Sequence[Sample], values_N: np.ndarray, elsewhere: float = 0.0) -> Rows:
    """Undo ``at_said``: one (T,) row for each sample."""
    counts = [int(sample.said.sum()) for sample in samples]
    if sum(counts) != len(values_N):
        raise ValueError(f"{len(values_N)} values for {sum(counts)} tokens that were said: give one for each")
    rows = []
    for sample, values in zip(samples, np.split(values_N, np.cumsum(counts)[:-1]), strict=True):
        row = np.full(len(sample), elsewhere)
        row[sample.said] = values
        rows.append(torch.from_numpy(row).float())
    return rows


@dataclass(frozen=True)
class Padded:
    """B samples as tensors (B, T), padded on the right: causal attention keeps padding out of sight."""

    ids: torch.Tensor
    said: torch.Tensor
    advantage: torch.Tensor
    engine_logprob: torch.Tensor
    reply: torch.Tensor
    turns_B: torch.Tensor

    @staticmethod
    def of(samples: Sequence[Sample], device: torch.device) -> "Padded":
        """Put samples together."""

        def rows(name: str, dtype: torch.dtype, padding: int = 0) -> torch.Tensor:
            values = [torch.from_numpy(getattr(sample, name)).to(dtype) for sample in samples]
            return padded(values, padding).to(device)

        return Padded(
            rows("ids", torch.long),
            rows("said", torch.bool),
            rows("advantage", torch.float32),
            rows("engine_logprob", torch.float32),
            rows("reply", torch.long, -1),
            torch.tensor([sample.turns for sample in samples], device=device),
        )


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
