"""A critic and an estimator with bodies of their own.

    critic       the loss of ``heads.py``, learnt along with the policy, in all weights of its body
    estimator    learnt before reinforcement, then fixed
      "sum"      loss = mean over episodes of (sum over turns of c_t - outcome)^2, with c_t from the body's hidden state
                 at the last token of turn t's reply
      "states"   loss = mean over episodes of the mean over turns of (v_t - outcome)^2, with v_t from the hidden state
                 out of which turn t's reply begins; c_t = v_(t+1) - v_t, and 0 for the last turn

Source: a second model as critic, as in verl and TRL; the estimator of stepwise progress attribution, arXiv 2505.20732,
whose authors train a language model with layers on top, in all its weights, on episodes of exploration. Its loss knows
sums only, and leaves open which turn a sum falls on. Differences of predicted outcomes do not, as in RUDDER, arXiv
1806.07857.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import torch

from manyturn.trainers.learn.heads.head_config import OwnCriticConfig, ProgressHeadConfig
from manyturn.trainers.learn.heads.heads import Figures, HeadTargets, ValueHead, contributions
from manyturn.trainers.learn.heads.progress_estimate import ProgressEstimate, states_estimate, sums_estimate
from manyturn.trainers.learn.heads.scalar_model import OwnBody
from manyturn.trainers.learn.passes.forward import Reading
from manyturn.trainers.learn.passes.gradient_passes import Measured
from manyturn.trainers.learn.passes.samples import Rows, Sample
from manyturn.trainers.learn.reading.pre_update_pass import StepReading


class OwnCritic(ValueHead):
    """The critic with a body of its own."""

    def __init__(self, config: OwnCriticConfig, body: OwnBody):
        self.fit, self._clip, self._body = body, config.clip, body

    def watch(self, reading: Reading) -> torch.Tensor:
        """The value before each token (B, T), of a pass of its own body; 0 before the first, which is not drawn."""
        return reading.before_each(self._body.predict)

    def begin(self, step: StepReading, targets: HeadTargets) -> Figures:
        self._samples = step.samples
        return super().begin(step, targets)

    def take(self, samples: Sequence[Sample], rows: Mapping[str, Rows]) -> None:
        self._samples = samples
        super().take(samples, rows)

    def loss(self, minibatch: Sequence[int], chosen: Sequence[int], reading: Reading) -> tuple[torch.Tensor, Measured]:
        """As the base's, but from a pass of its own body over the same rows."""
        return super().loss(minibatch, chosen, self._body.reader.read([self._samples[i] for i in chosen]))


class FixedEstimator:
    """The progress estimator that is trained before reinforcement."""

    name = "progress"

    def __init__(self, config: ProgressHeadConfig, body: OwnBody):
        self.config, self.fit = config, body
        self._sums = config.exploration.target == "sum"

    def watch(self, reading: Reading) -> list[torch.Tensor]:
        """The prediction at each reply, from a pass of its own body: one number per reply of a row."""
        return contributions(self.fit, reading, "reply_ends" if self._sums else "reply_starts")

    def estimate(self, samples: Sequence[Sample], rows: Rows, episodes: int) -> ProgressEstimate:
        """The opinion of the episodes that these samples are of.

        Args:
            rows: what ``watch`` returned of each sample, together or in the step's reading.
        """
        return (sums_estimate if self._sums else states_estimate)(samples, rows, episodes)

    def begin(self, step: StepReading, targets: HeadTargets) -> Figures:
        """Nothing is to be learnt any more: how well it still does, the policy having moved."""
        if (outcome_E := targets.outcome_E) is None:
            raise ValueError("a progress estimator is measured by outcomes: give the outcome of each episode")
        total_E = self.estimate(step.samples, step.head_values(self.name), len(outcome_E)).total_E
        known_E = np.isfinite(outcome_E)
        return {"progress_loss": float(np.square(total_E - outcome_E)[known_E].mean()) if known_E.any() else None}

    def loss(self, minibatch: Sequence[int], chosen: Sequence[int], reading: Reading) -> tuple[torch.Tensor, Measured]:
        return reading.logprob.new_zeros(()), {}

    def update(self, max_norm: float) -> Figures:
        return {}

    def drop(self) -> None:
        """Nothing is learnt in a step."""

    def learn(self, samples: Sequence[Sample], outcome_E: np.ndarray, max_norm: float) -> float:
        """One update towards the outcomes of the episodes of these samples; returns the loss before it.

        Args:
            outcome_E: outcome of each episode by its number, known for all of these.
        """
        # An episode's turns may be in several passes, so that its sum has to be known before any of them.
        rows = self.fit.over(samples, self.watch)
        loss, slopes = self._slopes(samples, rows, outcome_E)

        def backward() -> None:
            for chosen, reading in self.fit.reader.readings(samples, range(len(samples))):
                predicted = torch.cat(self.watch(reading))
                slope = torch.from_numpy(np.concatenate([slopes[i] for i in chosen])).to(predicted)
                (slope * predicted).sum().backward()

        self.fit.reader.budget.within(backward, self.fit.drop)
        self.fit.apply(max_norm)
        return loss

    def _slopes(self, samples: Sequence[Sample], rows: Rows, outcome_E: np.ndarray) -> tuple[float, list[np.ndarray]]:
        """The loss, and its derivative by each prediction of each sample."""
        lengths = [len(row) for row in rows]
        owner_K = np.repeat([sample.episode for sample in samples], lengths)
        turns_K = np.bincount(owner_K)[owner_K]
        if self._sums:
            predicted_K, weight_K = self.estimate(samples, rows, len(outcome_E)).total_E[owner_K], 1.0
        else:
            predicted_K, weight_K = torch.cat(rows).double().numpy(), 1.0 / turns_K
        missing_K, episodes = predicted_K - outcome_E[owner_K], len(np.unique(owner_K))
        loss = float((np.square(missing_K) / turns_K).sum() / episodes)
        return loss, np.split(2 * missing_K * weight_K / episodes, np.cumsum(lengths)[:-1])

    def totals(self, samples: Sequence[Sample], episodes: int) -> np.ndarray:
        """The estimated outcome of each episode by its number; 0 without a sample."""
        return self.estimate(samples, self.fit.over(samples, self.watch), episodes).total_E
