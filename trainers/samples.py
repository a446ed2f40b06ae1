"""From episodes to what the learner computes: one sequence for each branch of a ledger, every token once."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from manyturn.agents.episode import Episode


@dataclass(frozen=True)
class Sample:
    """A branch of T tokens.

    Attributes:
        episode: number of the episode among those of the step.
        ids: (T,) token ids.
        said: (T,) True where the policy said the token.
        advantage: (T,) credit of the turn that the token belongs to, 0 elsewhere.
        engine_logprob: (T,) log-probability that the engine drew the token with, 0 elsewhere.
    """

    episode: int
    ids: np.ndarray
    said: np.ndarray
    advantage: np.ndarray
    engine_logprob: np.ndarray

    def __len__(self) -> int:
        return len(self.ids)


def samples_of(
    episodes: Sequence[Episode], advantage_K: np.ndarray | None = None, token_T: np.ndarray | None = None
) -> list[Sample]:
    """The sequences of E episodes.

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
            advantage = np.zeros(len(branch.ids))
            for span, value in zip(ledger.spans, values, strict=True):
                if span.branch == index:
                    advantage[span.start : span.end] = value
            samples.append(
                Sample(number, np.array(branch.ids), np.array(branch.said), advantage, np.array(branch.logprobs))
            )
    return samples


@dataclass(frozen=True)
class Padded:
    """B samples as tensors (B, T), padded on the right: causal attention keeps padding out of sight."""

    ids: torch.Tensor
    said: torch.Tensor
    advantage: torch.Tensor
    engine_logprob: torch.Tensor

    @staticmethod
    def of(samples: Sequence[Sample], device: torch.device) -> "Padded":
        width = max(map(len, samples))

        def rows(name: str, dtype: torch.dtype) -> torch.Tensor:
            out = torch.zeros(len(samples), width, dtype=dtype)
            for row, sample in enumerate(samples):
                out[row, : len(sample)] = torch.from_numpy(getattr(sample, name)).to(dtype)
            return out.to(device)

        return Padded(
            rows("ids", torch.long),
            rows("said", torch.bool),
            rows("advantage", torch.float32),
            rows("engine_logprob", torch.float32),
        )


def micro_batches(samples: Sequence[Sample], tokens: int) -> list[list[int]]:
    """Indices of samples in groups of like length, each of at most ``tokens`` tokens after padding."""
    order = sorted(range(len(samples)), key=lambda i: (len(samples[i]), i))
    groups: list[list[int]] = [[]]
    for i in order:
        if groups[-1] and len(samples[i]) * (len(groups[-1]) + 1) > tokens:
            groups.append([])
        groups[-1].append(i)
    return groups
