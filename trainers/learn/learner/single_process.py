"""Learning in one process; ``ranks/rank_zero.py`` has the same methods for rank 0 of several."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from transformers import PreTrainedModel

from manyturn.agents.engine.card.device_handover import release_cached
from manyturn.agents.model.shard_files import WrittenShards
from manyturn.trainers.learn.heads.heads import LearnerHead
from manyturn.trainers.learn.learner.learner_config import LearnerConfig
from manyturn.trainers.learn.learner.policy_optimizer import PolicyOptimizer
from manyturn.trainers.learn.learner.updates import Updates
from manyturn.trainers.learn.objective.objective import ObjectiveConfig, RegulariserState
from manyturn.trainers.learn.passes.forward import Reader
from manyturn.trainers.learn.passes.gradient_passes import Passes
from manyturn.trainers.learn.passes.parallel_passes import ParallelPasses
from manyturn.trainers.learn.passes.samples import Rows, Sample
from manyturn.trainers.learn.reading.reference_policy import ReadsReference, Reference
from manyturn.trainers.learn.reading.update_inputs import BeforeUpdate


class PolicyLearning(Protocol):
    """Updates of one policy: in a single process, or on rank 0 of several (``ranks/rank_zero.py``)."""

    @property
    def updates(self) -> Updates[Any]:
        """Updates of the policy in this process."""
        ...

    @property
    def reference(self) -> ReadsReference | None:
        """Reader with the reference's weights, where the objective keeps one."""
        ...

    def reader(self, reader: Reader) -> Reader:
        """Reader of a step's samples."""
        ...

    def use_threads(self, threads: int) -> bool:
        """Make passes side by side in threads; returns whether it does."""
        ...

    def put_together(self) -> None:
        """Give the policy the weights that were learnt."""
        ...

    def release_cached(self) -> None:
        """Give back the memory of GPUs that PyTorch has cached, in every rank."""
        ...

    def begin_reinforcement(self) -> None:
        """Forget the momentum; the reference becomes the present policy."""
        ...

    def of_step(
        self, before: BeforeUpdate, now: RegulariserState, key: tuple[Any, ...], kept_E: np.ndarray | None
    ) -> dict[str, float]:
        """As ``Updates.of_step``."""
        ...

    def of_values(self, samples: Sequence[Sample], key: tuple[Any, ...]) -> dict[str, float]:
        """As ``Updates.of_values``."""
        ...

    def imitate(
        self, samples: Sequence[Sample], weights: Rows, total_weight: float, lr: float, between: Callable[[], None]
    ) -> dict[str, float]:
        """As ``Updates.imitate``."""
        ...

    def tensors(self) -> dict[str, torch.Tensor]:
        """State of optimizer and reference, by name."""
        ...

    def write_shards(self, folder: Path, heads: Mapping[str, torch.Tensor]) -> WrittenShards | None:
        """Write each rank's shard into ``folder``; None where there are no shards."""
        ...

    def load(self, tensors: Mapping[str, torch.Tensor]) -> None:
        """Restore what ``tensors`` gave."""
        ...


class SingleProcess:
    """The updates of a policy, and its reference.

    Attributes:
        reference: what reads with the reference's weights, where the objective has one.
    """

    def __init__(
        self,
        policy: PreTrainedModel,
        reader: Reader,
        config: LearnerConfig,
        objective: ObjectiveConfig,
        heads: Sequence[LearnerHead],
    ):
        self._device = policy.device
        optimizer = PolicyOptimizer(policy, config)
        self.reference = Reference(optimizer.trained) if objective.keeps_reference else None
        self.updates = Updates(config, objective, reader, optimizer, heads, Passes())

    def reader(self, reader: Reader) -> Reader:
        """The reader of a step."""
        return reader

    def use_threads(self, threads: int) -> bool:
        """Make passes side by side, one in each thread."""
        self.updates.passes = ParallelPasses(threads, self.updates.optimizer.trained)
        return True

    def put_together(self) -> None:
        """The policy holds what was learnt: here it always does."""

    def release_cached(self) -> None:
        """Give back the GPU's memory that PyTorch has cached."""
        release_cached(self._device)

    def begin_reinforcement(self) -> None:
        """Forget the momentum; the reference becomes the policy as it is now."""
        self.updates.optimizer.forget()
        if self.reference is not None:
            self.reference.keep()

    def of_step(
        self, before: BeforeUpdate, now: RegulariserState, key: tuple[Any, ...], kept_E: np.ndarray | None
    ) -> dict[str, float]:
        """As ``Updates.of_step``."""
        return self.updates.of_step(before, now, key, kept_E)

    def of_values(self, samples: Sequence[Sample], key: tuple[Any, ...]) -> dict[str, float]:
        """As ``Updates.of_values``."""
        return self.updates.of_values(samples, key)

    def imitate(
        self, samples: Sequence[Sample], weights: Rows, total_weight: float, lr: float, between: Callable[[], None]
    ) -> dict[str, float]:
        """As ``Updates.imitate``."""
        return self.updates.imitate(samples, weights, total_weight, lr, between)

    def tensors(self) -> dict[str, torch.Tensor]:
        """The state of optimiser and reference, by name."""
        return self.updates.optimizer.tensors() | (self.reference.tensors() if self.reference is not None else {})

    def write_shards(self, folder: Path, heads: Mapping[str, torch.Tensor]) -> None:
        """One process has no shards."""

    def load(self, tensors: Mapping[str, torch.Tensor]) -> None:
        """The inverse of ``tensors``."""
        self.updates.optimizer.load_tensors(tensors)
        if self.reference is not None:
            self.reference.load_tensors(tensors)
