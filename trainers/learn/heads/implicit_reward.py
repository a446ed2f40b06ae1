"""Implicit rewards: a second policy that learns, from pairs of episodes, which of them did better.

    r_k = beta sum over tokens of turn k of log pi_phi(token) - log pi(token)
    Q_e = mean over the turns of episode e of r_k
    loss = mean over pairs (w, l) of episodes of one task, R_w > R_l, of - log sigmoid(Q_w - Q_l)

Source: Agentic Reinforcement Learning with Implicit Step Rewards (iStar), arXiv 2509.19199; as the authors' code
(Tongyi-ConvAI/Tongyi-Character, ``CharacterRL-iStar/istar/rm_utils.py``, ``compute_eto_loss_rm``; one update a step,
after credit was given), where w are the successes of a task and l its failures.

pi is the policy before the step's updates, so that rewards say what the last step's policy should have known better.
pi_phi begins as the policy when reinforcement begins, and its rewards are 0 until it has learnt.
"""

from collections.abc import Sequence

import numpy as np
import torch

from manyturn.trainers.learn.heads.head_config import ImplicitConfig
from manyturn.trainers.learn.heads.heads import Figures, HeadTargets
from manyturn.trainers.learn.heads.second_policy import OwnPolicy
from manyturn.trainers.learn.passes.forward import Reading
from manyturn.trainers.learn.passes.gradient_passes import Measured
from manyturn.trainers.learn.passes.samples import Sample
from manyturn.trainers.learn.reading.pre_update_pass import StepReading


class ImplicitRewards:
    """The second policy as a head: it reads in passes of its own, and learns once a step."""

    name = "implicit"

    def __init__(self, config: ImplicitConfig, fit: OwnPolicy, max_norm: float):
        self.config, self.fit, self._max_norm = config, fit, max_norm

    def watch(self, reading: Reading) -> torch.Tensor:
        """Its log-probability of each token (B, T), of a pass of its own; 0 where nothing was said."""
        return reading.logprob

    def rewards(self, step: StepReading) -> list[np.ndarray]:
        """r of each reply, in order, of each sample of a step."""
        ratios = [theirs - ours for theirs, ours in zip(step.head_values(self.name), step.logprob, strict=True)]
        return [self.config.beta * _by_reply(sample, ratio) for sample, ratio in zip(step.samples, ratios, strict=True)]

    def begin(self, step: StepReading, targets: HeadTargets) -> Figures:
        """The update of the step: credit has been given, and the policy is as it played."""
        if targets.outcome_E is None or targets.group_E is None:
            raise ValueError(
                "implicit rewards are learnt from outcomes by task: give outcome and group of each episode"
            )
        totals_E, turns_E = _sums(step.samples, self.rewards(step), len(targets.outcome_E))
        value_E = totals_E / np.maximum(turns_E, 1)
        better, worse = pairs(targets.outcome_E, targets.group_E)
        if not len(better):
            return {"implicit_pairs": 0.0}
        gap_P = value_E[better] - value_E[worse]
        loss, slope_E = preference(value_E, better, worse)
        self._learn(step.samples, self.config.beta * slope_E / np.maximum(turns_E, 1))
        won = float(((gap_P > 0) + 0.5 * (gap_P == 0)).mean())
        return {"implicit_pairs": float(len(better)), "implicit_won": won, "implicit_loss": loss}

    def _learn(self, samples: Sequence[Sample], weight_E: np.ndarray) -> None:
        """One update along the derivative of the loss by the log-probability of each token of an episode."""
        chosen = [number for number, sample in enumerate(samples) if weight_E[sample.episode]]

        def backward() -> None:
            for numbers, reading in self.fit.reader.readings(samples, chosen):
                weight_B = torch.from_numpy(weight_E[[samples[i].episode for i in numbers]]).to(reading.logprob)
                (reading.logprob * reading.reply_mask * weight_B[:, None]).sum().backward()

        self.fit.reader.budget.within(backward, self.fit.drop)
        self.fit.apply(self._max_norm)

    def loss(self, minibatch: Sequence[int], chosen: Sequence[int], reading: Reading) -> tuple[torch.Tensor, Measured]:
        return reading.logprob.new_zeros(()), {}

    def update(self, max_norm: float) -> Figures:
        return {}

    def drop(self) -> None:
        """Nothing is learnt in the policy's updates."""


def pairs(outcome_E: np.ndarray, group_E: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of the better and of the worse episode of every pair of one group whose outcomes differ.

    >>> pairs(np.array([1.0, 0.0, 0.5, np.nan]), np.array([0, 0, 1, 1]))
    (array([0]), array([1]))
    """
    better, worse = np.nonzero((group_E[:, None] == group_E) & (outcome_E[:, None] > outcome_E))
    return better, worse


def preference(value_E: np.ndarray, better: np.ndarray, worse: np.ndarray) -> tuple[float, np.ndarray]:
    """The loss over pairs, and its derivative by the value Q of each episode (E).

    >>> loss, slope_E = preference(np.array([2.0, 2.0]), np.array([0]), np.array([1]))
    >>> round(loss, 4), slope_E
    (0.6931, array([-0.5,  0.5]))
    """
    gap_P = value_E[better] - value_E[worse]
    slope_P = -1.0 / (1.0 + np.exp(gap_P)) / len(gap_P)
    slope_E = np.bincount(better, slope_P, len(value_E)) - np.bincount(worse, slope_P, len(value_E))
    return float(np.logaddexp(0.0, -gap_P).mean()), slope_E


def _by_reply(sample: Sample, ratio: torch.Tensor) -> np.ndarray:
    """Sum over the tokens of each reply of a sample, in order."""
    numbers = sample.reply[sample.reply_mask]
    _, place = np.unique(numbers, return_inverse=True)
    return np.bincount(place, ratio.double().numpy()[sample.reply_mask])


def _sums(samples: Sequence[Sample], rows: Sequence[np.ndarray], episodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Sum of the rewards of each episode, and number of its replies (E each)."""
    owner = np.repeat([sample.episode for sample in samples], [len(row) for row in rows]).astype(np.int64)
    return np.bincount(owner, np.concatenate(rows), episodes), np.bincount(owner, minlength=episodes)
