"""The estimate of a progress estimator: the contribution of each turn, and the outcome of each episode.

    predictions that are contributions      c_t = p_t,               total = sum over turns of p_t
    predictions that are outcomes           c_t = p_(t+1) - p_t,     total = p of the last turn;  c = 0 at the last turn

Outcomes are predicted before each reply. So what the last reply does is not in the estimate, and the last turn earns
what the outcome is above it.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch

from manyturn.trainers.learn.passes.samples import Rows, Sample


class ProgressEstimate(NamedTuple):
    """An estimate of E episodes with K turns.

    Attributes:
        contribution_K: of each turn.
        total_E: outcome that is expected of each episode, 0 of one without a turn.
    """

    contribution_K: np.ndarray
    total_E: np.ndarray


def sums_estimate(samples: Sequence[Sample], rows: Rows, episodes: int) -> ProgressEstimate:
    """The estimate of predicted contributions.

    Args:
        rows: a prediction for each reply of each sample.
        episodes: E, of which the samples may be some.
    """
    predicted_K, owner_K = _by_turn(samples, rows)
    return ProgressEstimate(predicted_K, np.bincount(owner_K, predicted_K, minlength=episodes))


def states_estimate(samples: Sequence[Sample], rows: Rows, episodes: int) -> ProgressEstimate:
    """The estimate of outcomes that are predicted before each reply; see ``sums_estimate``.

    >>> empty = np.zeros(0)
    >>> samples = [Sample(0, empty, empty, empty, empty), Sample(1, empty, empty, empty, empty)]
    >>> states_estimate(samples, [torch.tensor([0.5, 0.25, 1.0]), torch.tensor([0.75])], 2)
    ProgressEstimate(contribution_K=array([-0.25,  0.75,  0.  ,  0.  ]), total_E=array([1.  , 0.75]))
    """
    predicted_K, owner_K = _by_turn(samples, rows)
    contribution_K, total_E = np.zeros(len(owner_K)), np.zeros(episodes)
    (follows_K,) = np.nonzero(owner_K[1:] == owner_K[:-1])
    contribution_K[follows_K] = predicted_K[follows_K + 1] - predicted_K[follows_K]
    total_E[owner_K] = predicted_K  # of equal places the last one stays
    return ProgressEstimate(contribution_K, total_E)


def _by_turn(samples: Sequence[Sample], rows: Rows) -> tuple[np.ndarray, np.ndarray]:
    """Predictions of all K turns in order, and the episode of each."""
    owner_K = np.repeat([sample.episode for sample in samples], [len(row) for row in rows]).astype(np.int64)
    return torch.cat([torch.as_tensor(row) for row in rows]).double().numpy(), owner_K
