"""Imitation: an update towards saying what demonstrations say, without credit."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import torch

from manyturn.trainers.learn.learner.learner import Learner
from manyturn.trainers.learn.passes.samples import Sample


def imitate(
    learner: Learner,
    samples: Sequence[Sample],
    lr: float,
    observed: float = 0.0,
    between: Callable[[], None] = lambda: None,
) -> dict[str, float]:
    """One update of the policy.

        loss = -sum over tokens of w log pi(token) / sum of w        w: 1 where the token was said, else ``observed``

    Args:
        lr: learning rate.
        observed: what a token that was not said weighs; with 0 it is not read. The first token is never predicted.
        between: called in each micro-batch, or with several ranks before the first; what it raises ends the update, of
            which nothing is applied.

    Returns:
        The loss, and the norm of the gradient.
    """
    # A reply that is wrong on purpose is neither said nor the environment's: it weighs nothing.
    weights = [np.where(sample.said, 1.0, np.where(sample.reply < 0, observed, 0.0)) for sample in samples]
    if observed:
        samples = [replace(sample, said=np.arange(len(sample)) > 0) for sample in samples]
    whole = sum(float(weight[sample.said].sum()) for sample, weight in zip(samples, weights, strict=True))
    rows = [torch.from_numpy(weight) for weight in weights]
    return learner.imitate(samples, rows, whole, lr, between)
