"""Constants of a step's updates: credit, probabilities before them, and corrections."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch

from manyturn.trainers.learn.objective.objective import ObjectiveConfig, Tokens
from manyturn.trainers.learn.objective.rollout_correction import (
    Sequences,
    effective_share,
    importance_weights,
    keep_mask,
    mismatch,
)
from manyturn.trainers.learn.passes.forward import Reading
from manyturn.trainers.learn.passes.samples import Rows, Sample, at_replies, on_replies, padded
from manyturn.trainers.learn.reading.pre_update_pass import StepReading


@dataclass(frozen=True)
class BeforeUpdate:
    """One (T,) row for each sample; None where nothing asks.

    Attributes:
        samples: all branches of the step's episodes.
        advantage: credit of the token, 0 where nothing was said.
        old: log-probability before the updates.
        keep: 1 at what was said and is learnt from.
        reference: log-probability under the reference policy.
        weight: correction of the policy loss.
    """

    samples: Sequence[Sample]
    advantage: Rows
    old: Rows
    keep: Rows
    reference: Rows | None = None
    weight: Rows | None = None

    @classmethod
    def of(
        cls, step: StepReading, advantage_T: np.ndarray, config: ObjectiveConfig, old_logprobs: str
    ) -> tuple[Self, dict[str, float | None]]:
        """The constants of a step, and figures on its corrections.

        Args:
            advantage_T: credit of each token that was said.
            old_logprobs: whose the probabilities before the updates are, of the "learner" or the "engine".
        """
        samples, figures = step.samples, dict[str, float | None]()
        old, weight, keep = as_drawn(samples), None, [torch.from_numpy(sample.reply_mask) for sample in samples]
        if old_logprobs == "learner":
            old = step.logprob
            weight, keep, measured = corrected(config, samples, old)
            figures |= measured
        return cls(samples, on_replies(samples, advantage_T), old, keep, step.reference, weight), figures

    def replies(self, indices: Sequence[int]) -> Rows:
        """Of these samples, the number of the reply that each token learnt from belongs to, -1 elsewhere."""
        return [torch.from_numpy(self.samples[i].reply).masked_fill(self.keep[i] == 0, -1) for i in indices]

    def moved(self, indices: Sequence[int], reading: Reading) -> float:
        """Sum over what these samples learn from of old minus new log-probability: k1 of KL(old, new)."""
        old = padded([self.old[i] for i in indices]).to(reading.logprob.device)
        keep = padded([self.keep[i] for i in indices]).to(reading.logprob.device) > 0
        return float((old - reading.logprob.detach()).masked_fill(~keep, 0).sum())

    def tokens(self, indices: Sequence[int], reading: Reading) -> Tokens:
        """The objective's view of a micro-batch of these samples."""
        device = reading.reply_mask.device

        def together(rows: Rows) -> torch.Tensor:
            return padded([rows[i] for i in indices]).to(device)

        return Tokens(
            reading.logprob,
            together(self.old),
            together(self.advantage),
            together(self.keep) > 0,
            reply=reading.reply,
            ref_logp=None if self.reference is None else together(self.reference),
            entropy=reading.entropy,
            weight=None if self.weight is None else together(self.weight),
            turns_B=torch.tensor([self.samples[i].turns for i in indices], device=device),
        )


def as_drawn(samples: Sequence[Sample]) -> Rows:
    """The log-probabilities that the engine drew with."""
    return [torch.from_numpy(sample.engine_logprob).float() for sample in samples]


def engine_gap(reading: Reading, samples: Sequence[Sample]) -> float:
    """Largest difference between the log-probabilities of learner and engine."""
    drawn = padded(as_drawn(samples)).to(reading.logprob.device)
    return float((reading.logprob.detach() - drawn).masked_fill(~reading.reply_mask, 0).abs().max())


def log_ratio(samples: Sequence[Sample], old: Rows) -> np.ndarray:
    """Learner over engine, (N,) of all tokens that were said."""
    return at_replies(samples, old).astype(np.float64) - at_replies(samples, [s.engine_logprob for s in samples])


def mismatch_of(samples: Sequence[Sample], old: Rows) -> dict[str, float]:
    """Figures on how far engine and learner are apart."""
    return mismatch(log_ratio(samples, old))


def corrected(
    config: ObjectiveConfig, samples: Sequence[Sample], old: Rows
) -> tuple[Rows | None, Rows, dict[str, float]]:
    """Weights against the difference between engine and learner, what is left of the tokens, and figures on both."""
    log_ratio_T = log_ratio(samples, old)
    ids_T = at_replies(samples, [(i << 32) + config.sequences(sample.reply) for i, sample in enumerate(samples)])
    sequences, figures, weight = Sequences.of(ids_T), dict[str, float](), None
    if config.correction:
        weight_T = importance_weights(config.correction, log_ratio_T, sequences)
        weight, figures["effective_samples"] = on_replies(samples, weight_T), effective_share(weight_T)
    keep_T = keep_mask(config.reject, log_ratio_T, sequences)
    if config.reject:
        figures["rejected_tokens"] = 1 - float(keep_T.mean())
    return weight, on_replies(samples, keep_T.astype(np.float64)), figures
