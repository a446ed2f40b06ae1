"""A critic and an estimator with bodies of their own.

    critic       the loss of ``heads.py``, learnt along with the policy, in all weights of its body
    estimator    loss = mean over episodes of (sum over turns of c_t - outcome)^2, with c_t from the body's hidden state
                 at the last token of turn t's reply; learnt before reinforcement, then fixed

Source: a second model as critic, as in verl and TRL; the estimator of stepwise progress attribution, arXiv 2505.20732,
whose authors train a language model with layers on top, in all its weights, on episodes of exploration.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import torch

from manyturn.trainers.learn.heads.head_config import ExplorationConfig, OwnCriticConfig
from manyturn.trainers.learn.heads.heads import Figures, HeadTargets, ValueHead, contributions
from manyturn.trainers.learn.heads.own_body import OwnBody
from manyturn.trainers.learn.passes.forward import Reading
from manyturn.trainers.learn.passes.gradient_passes import Measured
from manyturn.trainers.learn.passes.samples import Rows, Sample
from manyturn.trainers.learn.reading.step_reading import StepReading


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

    def __init__(self, config: ExplorationConfig, body: OwnBody):
        self.config, self.fit = config, body

    def watch(self, reading: Reading) -> list[torch.Tensor]:
        """The contribution of each reply to the outcome, from a pass of its own body: one number per reply of a row."""
        return contributions(self.fit, reading)

    def begin(self, step: StepReading, targets: HeadTargets) -> Figures:
        """Nothing is to be learnt any more: how well it still does, the policy having moved."""
        if (outcome_E := targets.outcome_E) is None:
            raise ValueError("a progress estimator is measured by outcomes: give the outcome of each episode")
        owner = np.repeat([sample.episode for sample in step.samples], [len(row) for row in step.said_by(self.name)])
        total_E = np.bincount(owner, np.concatenate(step.said_by(self.name)), minlength=len(outcome_E))
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
        missing_E = self.totals(samples, len(outcome_E)) - outcome_E
        episodes = np.unique([sample.episode for sample in samples])

        def slopes() -> None:
            for chosen, reading in self.fit.reader.readings(samples, range(len(samples))):
                rows = self.watch(reading)
                owner = np.repeat([samples[i].episode for i in chosen], [len(row) for row in rows])
                contribution = torch.cat(rows)
                slope = torch.from_numpy(2 * missing_E[owner] / len(episodes)).to(contribution)
                (slope * contribution).sum().backward()

        self.fit.reader.budget.within(slopes, self.fit.drop)
        self.fit.apply(max_norm)
        return float(np.square(missing_E[episodes]).mean())

    def totals(self, samples: Sequence[Sample], episodes: int) -> np.ndarray:
        """Sum over turns of the contributions, of each episode by its number; 0 without a sample."""
        rows: Rows = self.fit.over(samples, self.watch)
        owner = np.repeat([sample.episode for sample in samples], [len(row) for row in rows])
        return np.bincount(owner, torch.cat(rows).double().numpy(), minlength=episodes)
