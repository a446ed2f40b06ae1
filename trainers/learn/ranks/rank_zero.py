"""Rank 0's side of a policy that several ranks learn: it says what is to be done, and does its own share of it."""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedModel

from manyturn.agents.model.shard_files import WrittenShards
from manyturn.trainers.learn.heads.heads import critics_of, head_tensors
from manyturn.trainers.learn.objective.objective import RegulariserState
from manyturn.trainers.learn.passes.forward import Reader, Watch
from manyturn.trainers.learn.passes.samples import Rows, Sample
from manyturn.trainers.learn.ranks.message import RankMessage
from manyturn.trainers.learn.ranks.process_group import Ranks
from manyturn.trainers.learn.ranks.rank_learner import RankLearner, load_message, step_message, values_message
from manyturn.trainers.learn.reading.reference_policy import ReadsReference
from manyturn.trainers.learn.reading.update_inputs import BeforeUpdate


class Leading:
    """Rank 0: the full policy, and its share of the updates.

    Args:
        number: which of the run's policies it is.
        policy: becomes what was learnt after each step.

    Attributes:
        updates: rank 0's share of them.
    """

    def __init__(self, ranks: Ranks, number: int, policy: PreTrainedModel, own: RankLearner):
        self._ranks, self._number, self._policy, self._own = ranks, number, policy, own
        self.updates = own.updates
        self._is_stale = False
        self._load(head_tensors(self.updates.heads))

    def use_threads(self, threads: int) -> bool:
        """Ranks share the passes out instead."""
        return False

    def put_together(self) -> None:
        """The policy becomes what all ranks have learnt, unless it is that already."""
        if self._is_stale:
            self._all(RankMessage("give"))
            self._is_stale = False

    def release_cached(self) -> None:
        """Have every rank give back the memory that PyTorch has cached on its GPU."""
        self._all(RankMessage("release"))

    def begin_reinforcement(self) -> None:
        """Each rank forgets the momentum, and takes the policy and its heads as they are now; so does its reference."""
        self._load(head_tensors(self.updates.heads), keep=True)

    def of_step(
        self, before: BeforeUpdate, now: RegulariserState, key: tuple[Any, ...], kept_E: np.ndarray | None
    ) -> dict[str, float]:
        """As ``Updates.of_step``."""
        return self._all(step_message(before, now, key, kept_E, self.updates.optimizer.lr, self.updates.heads))

    def of_values(self, samples: Sequence[Sample], key: tuple[Any, ...]) -> dict[str, float]:
        """As ``Updates.of_values``."""
        return self._all(values_message(samples, key, critics_of(self.updates.heads)))

    def imitate(
        self, samples: Sequence[Sample], weights: Rows, total_weight: float, lr: float, between: Callable[[], None]
    ) -> dict[str, float]:
        """As ``Updates.imitate``; once the ranks have begun they are not interrupted. The policy stays as it was."""
        between()
        message = RankMessage("imitate", {"total_weight": total_weight, "lr": lr})
        message.put_samples(samples)
        message.put_rows("weights", weights)
        self._is_stale = True
        return self._all(message)

    def tensors(self) -> dict[str, torch.Tensor]:
        """The optimiser's full state, by the names that one process gives it."""
        return self._all(RankMessage("state"))

    def write_shards(self, folder: Path, heads: Mapping[str, torch.Tensor]) -> WrittenShards | None:
        """Have every rank write its shard; rank 0 writes the heads too. None where some rank cannot see the folder."""
        folder.mkdir()
        probe = folder / f"seen-{time.monotonic_ns()}-{id(self)}"
        probe.touch()
        plain: dict[str, Any] = {"folder": str(folder.resolve()), "probe": probe.name}
        is_seen = self._all(RankMessage("save", plain), RankMessage("save", plain, dict(heads)))
        probe.unlink()
        if is_seen:
            return WrittenShards(folder, self._ranks.size)
        folder.rmdir()
        return None

    def load(self, tensors: Mapping[str, torch.Tensor]) -> None:
        """Give every rank the policy's weights, and of a checkpoint's tensors what it needs."""
        self._load(tensors)

    def read(self, samples: Sequence[Sample], watches: Collection[str], *, reference: bool) -> dict[str, Rows]:
        """Read samples on all ranks, some on each; see ``Reader.over``."""
        message = RankMessage("read", {"watches": list(watches), "reference": reference})
        message.put_samples(samples)
        return self._all(message)

    def reader(self, reader: Reader) -> Reader:
        """The reader that all ranks read for, in place of rank 0's."""
        return _SharedReader(reader, self)

    @property
    def reference(self) -> ReadsReference | None:
        """The reader with the reference's weights, of which each rank has a shard."""
        return _SharedReference(self) if self._own.reference is not None else None

    def _load(self, tensors: Mapping[str, torch.Tensor], *, keep: bool = False) -> None:
        shared, own = load_message(tensors, self.updates, keep=keep)
        self._all(shared, own)
        self._is_stale = False

    def _all(self, message: RankMessage, own_message: RankMessage | None = None) -> Any:
        message.plain |= {"policy": self._number, "micro_tokens": self.updates.reader.budget.tokens}
        with self._ranks.together():
            self._ranks.tell(message)
            return self._own.do(own_message or message, self._policy)


class _SharedReader(Reader):
    def __init__(self, reader: Reader, leading: Leading):
        super().__init__(reader.model, reader.budget, reader.temperature, reader.packing)
        self._leading = leading

    def over(self, samples: Sequence[Sample], watches: Mapping[str, Watch]) -> dict[str, Rows]:
        return self._leading.read(samples, watches.keys(), reference=False)


class _SharedReference:
    def __init__(self, leading: Leading):
        self._leading = leading

    def over(self, reader: Reader, samples: Sequence[Sample], watches: Mapping[str, Watch]) -> dict[str, Rows]:
        return self._leading.read(samples, watches.keys(), reference=True)
