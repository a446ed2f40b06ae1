"""The updates of a step, from what stays fixed during them to the policy's weights and those of its heads.

Whatever is asked of the policy before them is in ``BeforeUpdate`` and in the heads. So every rank of a run makes the
same updates from the same numbers, and needs nothing of the environment.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
import torch

from manyturn.envs.contract.random_keys import generator
from manyturn.trainers.learn.heads.heads import LearnerHead, critics_of
from manyturn.trainers.learn.learner.learner_config import LearnerConfig
from manyturn.trainers.learn.learner.policy_optimizer import PolicyOptimizer
from manyturn.trainers.learn.objective.aggregate import Denominators
from manyturn.trainers.learn.objective.objective import ObjectiveConfig, RegulariserState, objective
from manyturn.trainers.learn.passes.forward import Reader, Reading
from manyturn.trainers.learn.passes.gradient_passes import Measured, Passes
from manyturn.trainers.learn.passes.samples import Rows, Sample, padded
from manyturn.trainers.learn.reading.update_inputs import BeforeUpdate, engine_gap

Head = TypeVar("Head", bound=LearnerHead)


@dataclass
class Updates(Generic[Head]):
    """The parts that an update works with.

    Attributes:
        reader: of the policy whose weights ``optimizer`` changes.
        heads: what is learnt next to the policy.
        passes: how gradients come about.
        gap: largest difference between the log-probabilities of learner and engine in a step's first update.
    """

    config: LearnerConfig
    objective: ObjectiveConfig
    reader: Reader
    optimizer: PolicyOptimizer
    heads: Sequence[Head]
    passes: Passes
    gap: float | None = None

    def of_step(
        self, before: BeforeUpdate, now: RegulariserState, key: tuple[Any, ...], kept_E: np.ndarray | None
    ) -> dict[str, float]:
        """All updates of a step, or those before it moved too far; the means of what they measured.

        Args:
            key: decides which episodes share a minibatch.
            kept_E: whether an episode is learnt from; None: all are.
        """
        samples, gathered = before.samples, defaultdict[str, list[float]](list)
        self.gap, stopped = None, 0.0
        self.reader.requested = self.reader.computed = 0
        episodes = {sample.episode for sample in samples if kept_E is None or kept_E[sample.episode]}
        for chosen in self._minibatches(sorted(episodes), key):
            indices = [i for i, sample in enumerate(samples) if sample.episode in chosen]
            measured = self._update(before, indices, now)
            for name, value in measured.items():
                gathered[name].append(value)
            if stopped := measured.get("stopped", 0.0):
                break
        means = {name: sum(values) / len(values) for name, values in gathered.items()}
        if self.config.stop_kl is not None:
            means["stopped"] = stopped
        requested, computed = self.passes.counted(self.reader)
        if self.config.packing != "padding" and requested:
            means["packing_ratio"] = computed / requested
        budget = self.reader.budget
        if budget.tokens < self.config.micro_tokens:
            means |= {"micro_tokens": budget.tokens, "learner_out_of_memory": budget.times}
        for head in self.heads:
            head.fit.finish()
        return means

    def of_values(self, samples: Sequence[Sample], key: tuple[Any, ...]) -> dict[str, float]:
        """A pass of the critic over these samples, without the policy; the means of what it measured.

        Args:
            key: decides which episodes share a minibatch.
        """
        heads, gathered = critics_of(self.heads), defaultdict[str, list[float]](list)
        for chosen in self._minibatches(sorted({sample.episode for sample in samples}), key, epochs=1):
            indices = [i for i, sample in enumerate(samples) if sample.episode in chosen]
            for name, value in self._update_values(samples, indices, heads).items():
                gathered[name].append(value)
        for head in heads:
            head.fit.finish()
        return {name: sum(values) / len(values) for name, values in gathered.items()}

    def _update_values(
        self, samples: Sequence[Sample], indices: Sequence[int], heads: Sequence[Head]
    ) -> dict[str, float]:
        def loss(chosen: list[int], reading: Reading) -> tuple[torch.Tensor, Measured]:
            # A fit that is solved for has no gradient, and a pass goes backwards in any case.
            value, measured = 0.0 * reading.logprob.sum(), dict[str, torch.Tensor]()
            for head in heads:
                head_loss, more = head.loss(indices, chosen, reading)
                value, measured = value + head_loss, measured | more
            return value, measured

        sums = self.passes.over(self.reader, samples, indices, loss, self._drop)
        self.optimizer.drop()
        for head in heads:
            self._join(head)
            head.update(self.config.max_grad_norm)
        return sums

    def imitate(
        self,
        samples: Sequence[Sample],
        weights: Rows,
        total_weight: float,
        lr: float,
        between: Callable[[], None] = lambda: None,
    ) -> dict[str, float]:
        """One update towards saying what samples say; see ``Learner.imitate``.

        Args:
            weights: (T,) what each token of a sample weighs.
            total_weight: sum of weights over trained tokens.
            between: called in each pass.
        """
        self.optimizer.begin_step(lr)

        def loss(chosen: list[int], reading: Reading) -> tuple[torch.Tensor, Measured]:
            weight_BT = padded([weights[i].float() for i in chosen]).to(reading.reply_mask.device)
            value = -(reading.logprob * reading.reply_mask * weight_BT).sum() / total_weight
            between()
            return value, {"loss": value.detach()}

        everything = range(len(samples))
        sums = self.passes.over(self.reader.at(1.0), samples, everything, loss, self.optimizer.drop)
        return {"loss": sums["loss"], "grad_norm": self.optimizer.update()}

    def _minibatches(
        self, episodes: Sequence[int], key: tuple[Any, ...], epochs: int | None = None
    ) -> Iterator[set[int]]:
        """The episodes of each update of a step."""
        for epoch in range(epochs or self.config.epochs):
            order = generator("minibatches", *key, epoch).permutation(len(episodes))
            for start in range(0, len(order), self.config.minibatch):
                yield {episodes[i] for i in order[start : start + self.config.minibatch]}

    def _update(self, before: BeforeUpdate, indices: Sequence[int], now: RegulariserState) -> dict[str, float]:
        """One gradient over a minibatch, accumulated over micro-batches with the minibatch's denominators."""
        samples = before.samples
        replies = [self.objective.sequences(row)[None] for row in before.replies(indices)]
        if not any((row >= 0).any() for row in replies):
            return {}  # every token was rejected
        counts = Denominators.of(*replies, episodes=len({samples[i].episode for i in indices}))
        is_first, gaps = self.gap is None, list[float]()

        def loss(chosen: list[int], reading: Reading) -> tuple[torch.Tensor, Measured]:
            if is_first:
                gaps.append(engine_gap(reading, [samples[i] for i in chosen]))
            value, measured = objective(self.objective, before.tokens(chosen, reading), counts, now)
            for head in self.heads:
                head_loss, more = head.loss(indices, chosen, reading)
                value, measured = value + head_loss, measured | more
            if self.config.stop_kl is not None:
                moved = before.moved(chosen, reading) / counts.episodes
                measured["episode_kl"] = torch.tensor(moved, dtype=torch.float64)
            return value, measured

        sums = self.passes.over(self.reader, samples, indices, loss, self._drop)
        self.gap = max(gaps) if gaps else self.gap
        if self.config.stop_kl is not None and abs(sums["episode_kl"]) > self.config.stop_kl:
            self.optimizer.drop()
            sums["stopped"] = 1.0
        else:
            sums["grad_norm"] = self.optimizer.update()
        for head in self.heads:
            self._join(head)
            sums |= {name: value for name, value in head.update(self.config.max_grad_norm).items() if value is not None}
        return sums

    def _join(self, head: Head) -> None:
        """Before a head is updated: one process has seen everything."""

    def _drop(self) -> None:
        """Forget the micro-batches since the last update."""
        self.optimizer.drop()
        for head in self.heads:
            head.drop()
