"""What stays fixed during the updates of a step: probabilities before them, corrections, values and their targets."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from manyturn.trainers.learn.correction import Sequences, effective_share, importance_weights, kept, mismatch
from manyturn.trainers.learn.forward import Reading
from manyturn.trainers.learn.objective import ObjectiveConfig, Tokens
from manyturn.trainers.learn.samples import Padded, Rows, Sample, at_said, on_tokens, padded


@dataclass(frozen=True)
class BeforeUpdate:
    """One (T,) row for each sample; None where nothing asks.

    Attributes:
        old: log-probability before the updates.
        kept: 1 at what was said and is learnt from.
        reference: log-probability under the reference policy.
        weight: correction of the policy loss.
        value: the critic's values before the updates.
        target: what the critic is to predict, NaN where nothing.
    """

    old: Rows
    kept: Rows
    reference: Rows | None = None
    weight: Rows | None = None
    value: Rows | None = None
    target: Rows | None = None

    def replies(self, samples: Sequence[Sample], indices: Sequence[int]) -> Rows:
        """Of these samples, the number of the reply that each token learnt from belongs to, -1 elsewhere."""
        return [torch.from_numpy(samples[i].reply).masked_fill(self.kept[i] == 0, -1) for i in indices]

    def tokens(self, indices: Sequence[int], batch: Padded, reading: Reading) -> Tokens:
        """What the objective sees of a micro-batch of these samples."""
        old, kept = together(self.old, indices, batch), together(self.kept, indices, batch)
        return Tokens(
            reading.logprob,
            old,
            batch.advantage,
            kept > 0,
            reply=batch.reply,
            ref_logp=None if self.reference is None else together(self.reference, indices, batch),
            entropy=reading.entropy,
            weight=None if self.weight is None else together(self.weight, indices, batch),
            turns_B=batch.turns_B,
        )


def together(rows: Rows, indices: Sequence[int], batch: Padded, padding: float = 0) -> torch.Tensor:
    """The rows of a micro-batch as one tensor (B, T)."""
    return padded([rows[i] for i in indices], padding).to(batch.ids.device)


def log_ratio(samples: Sequence[Sample], old: Rows) -> np.ndarray:
    """Learner over engine, (N,) of all tokens that were said."""
    return at_said(samples, old).astype(np.float64) - at_said(samples, [s.engine_logprob for s in samples])


def mismatch_of(samples: Sequence[Sample], old: Rows) -> dict[str, float]:
    """Figures on how far engine and learner are apart."""
    return mismatch(log_ratio(samples, old))


def corrected(
    config: ObjectiveConfig, samples: Sequence[Sample], old: Rows
) -> tuple[Rows | None, Rows, dict[str, float]]:
    """Weights against the difference between engine and learner, what is left of the tokens, and figures on both."""
    log_ratio_N = log_ratio(samples, old)
    ids_N = at_said(samples, [(i << 32) + config.sequences(sample.reply) for i, sample in enumerate(samples)])
    sequences, figures, weight = Sequences.of(ids_N), dict[str, float](), None
    if config.correction:
        weight_N = importance_weights(config.correction, log_ratio_N, sequences)
        weight, figures["effective_samples"] = on_tokens(samples, weight_N), effective_share(weight_N)
    keep_N = kept(config.reject, log_ratio_N, sequences)
    if config.reject:
        figures["rejected_tokens"] = 1 - float(keep_N.mean())
    return weight, on_tokens(samples, keep_N.astype(np.float64)), figures
