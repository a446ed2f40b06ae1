"""A rank's part of a policy that is learnt, and its work for each message of rank 0.

Rank 0 does the same as the others, from the same message, and has the whole policy besides: it reads steps with it,
and the engine draws with its weights. They are put together after each step, and after imitations when they are asked
for, in rank 0 alone.
"""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from transformers import PreTrainedModel

from manyturn.agents.engine.card.device_handover import release_cached
from manyturn.agents.model.shard_files import own_slices, write_shard
from manyturn.trainers.learn.heads.heads import SharedHead
from manyturn.trainers.learn.learner.learner_config import LearnerConfig
from manyturn.trainers.learn.learner.policy_optimizer import PolicyOptimizer
from manyturn.trainers.learn.learner.updates import Updates
from manyturn.trainers.learn.objective.epo import EntropyRange
from manyturn.trainers.learn.objective.objective import ObjectiveConfig, RegulariserState
from manyturn.trainers.learn.passes.forward import Reader, recompute_activations
from manyturn.trainers.learn.passes.samples import Rows, Sample
from manyturn.trainers.learn.ranks.message import RankMessage
from manyturn.trainers.learn.ranks.process_group import Ranks
from manyturn.trainers.learn.ranks.sharded_passes import Sharded, SharedPasses, spread
from manyturn.trainers.learn.reading.pre_update_pass import watch_called
from manyturn.trainers.learn.reading.reference_policy import Reference
from manyturn.trainers.learn.reading.update_inputs import BeforeUpdate

_ROWS = ("advantage", "old", "keep", "reference", "weight")


class _Step(NamedTuple):
    """The arguments of ``Updates.of_step``."""

    before: BeforeUpdate
    now: RegulariserState
    key: tuple[Any, ...]
    kept_E: np.ndarray | None


class RankLearner:
    """A rank's shard of a policy, its optimiser and its passes.

    Args:
        reader: of a copy of the policy on the CPU, the same in every rank; the copy is changed in place.
        device: where the shard goes.
        heads: those that learn along with the policy, whole in each rank.
    """

    def __init__(
        self,
        ranks: Ranks,
        reader: Reader,
        device: torch.device,
        config: LearnerConfig,
        objective: ObjectiveConfig,
        heads: Sequence[SharedHead],
    ):
        if config.gradient_checkpointing:
            recompute_activations(reader.model)
        self._device = device
        self._ranks, self._sharded = ranks, Sharded(reader.model, ranks, device)
        self.optimizer = PolicyOptimizer(self._sharded, config)
        self.reference = Reference(self.optimizer.trained) if objective.keeps_reference else None
        self._passes = SharedPasses(ranks, self._sharded)
        self.updates = _Joined(config, objective, reader, self.optimizer, heads, self._passes, ranks=ranks)

    def do(self, message: RankMessage, full_model: PreTrainedModel | None = None) -> Any:
        """Do as rank 0 says, all ranks at once; what comes of it.

        Args:
            full_model: the policy, in rank 0.
        """
        self.updates.reader.budget.tokens = message.plain["micro_tokens"]
        match message.what:
            case "step":
                result: Any = self.updates.of_step(*self._step(message))
                self._sharded.give(full_model)
            case "values":
                result = self.updates.of_values(self._take_heads(message), tuple(message.plain["key"]))
            case "imitate":
                rows, plain = message.given_rows("weights"), message.plain
                result = self.updates.imitate(message.samples(), rows, plain["total_weight"], plain["lr"])
            case "give":
                result = self._sharded.give(full_model)
            case "release":
                result = release_cached(self._device)
            case "read":
                result = self._read(message)
            case "state":
                result = self.optimizer.tensors() | (self.reference.tensors() if self.reference else {})
            case "save":
                result = self._save(message)
            case "load":
                result = self._load(message, full_model)
            case _:
                raise ValueError(f"rank 0 says {message.what!r}: have every rank run the same version of manyturn")
        return result

    def _step(self, message: RankMessage) -> _Step:
        plain, samples = message.plain, self._take_heads(message)
        self.optimizer.begin_step(plain["lr"])
        advantage, old, kept_rows = (message.given_rows(name) for name in _ROWS[:3])
        before = BeforeUpdate(samples, advantage, old, kept_rows, message.rows("reference"), message.rows("weight"))
        reference, weight = plain["entropy_range"]
        now = RegulariserState(plain["kl_coef"], EntropyRange(tuple(reference), weight))
        kept_E = message.tensors.get("kept_E")
        return _Step(before, now, tuple(plain["key"]), None if kept_E is None else kept_E.numpy())

    def _take_heads(self, message: RankMessage) -> list[Sample]:
        """The samples of a message, with which its heads stand where they stand in rank 0."""
        samples, heads = message.samples(), message.plain["heads"]
        for head in self.updates.heads:
            if head.name in heads:
                head.take(samples, {name: message.given_rows(f"{head.name} {name}") for name in heads[head.name]})
        return samples

    def _read(self, message: RankMessage) -> dict[str, Rows]:
        samples, plain = message.samples(), message.plain
        heads = {head.name: head.watch for head in self.updates.heads}
        watches = {name: watch_called(name, heads) for name in plain["watches"]}
        with self.reference.in_place() if plain["reference"] and self.reference else nullcontext():
            return self._passes.read(self.updates.reader, samples, watches)

    def _save(self, message: RankMessage) -> bool:
        """Begin to write this rank's shard, unless some rank does not see the folder; whether all do."""
        folder = Path(message.plain["folder"])
        if self._ranks.most(int(not (folder / message.plain["probe"]).is_file())):
            return False
        state = self.optimizer.state() | (self.reference.state() if self.reference else {}) | message.tensors
        write_shard(folder, own_slices(state, self._ranks.rank, self._ranks.size), self._ranks.rank)
        return True

    @torch.no_grad()
    def _load(self, message: RankMessage, full_model: PreTrainedModel | None) -> None:
        """Weights, the optimiser's state and heads, as rank 0 has them."""
        plain = message.plain
        self._sharded.take(full_model)
        trained = self.optimizer.trained
        tensors = dict[str, torch.Tensor]()
        for name in plain["like weights"]:
            weights = trained[int(name.split(".")[1])]
            tensors[name] = torch.zeros_like(weights)
            spread(tensors[name], None if full_model is None else message.tensors[name], weights.device)
        steps = {name: torch.tensor(value) for name, value in plain["steps"].items()}
        self.optimizer.load_tensors(tensors | steps)
        if self.reference and plain["keep"]:
            self.reference.keep()
        elif self.reference and any(name.startswith("reference.") for name in tensors):
            self.reference.load_tensors(tensors)
        self.optimizer.load_plain(plain["optimizer"])
        if full_model is None:  # rank 0's heads are those of its learner
            for head in self.updates.heads:
                head.fit.load_tensors(message.tensors)


class _Joined(Updates[SharedHead]):
    """Updates whose heads learn from the passes of all ranks."""

    def __init__(self, *args: Any, ranks: Ranks):
        super().__init__(*args)
        self._ranks = ranks

    def _join(self, head: SharedHead) -> None:
        head.join(self._ranks)


def step_message(
    before: BeforeUpdate,
    now: RegulariserState,
    key: tuple[Any, ...],
    kept_E: Any,
    lr: float,
    heads: Sequence[SharedHead],
) -> RankMessage:
    """The message with everything a rank needs for the updates of a step."""
    message = RankMessage(
        "step", {"key": list(key), "lr": lr, "kl_coef": now.kl_coef, "entropy_range": now.entropy_range}
    )
    message.put_samples(before.samples)
    for name in _ROWS:
        message.put_rows(name, getattr(before, name))
    if kept_E is not None:
        message.tensors["kept_E"] = torch.as_tensor(kept_E)
    _put_heads(message, heads)
    return message


def values_message(samples: Sequence[Sample], key: tuple[Any, ...], heads: Sequence[SharedHead]) -> RankMessage:
    """The message with everything a rank needs for a pass of the critic."""
    message = RankMessage("values", {"key": list(key)})
    message.put_samples(samples)
    _put_heads(message, heads)
    return message


def _put_heads(message: RankMessage, heads: Sequence[SharedHead]) -> None:
    message.plain["heads"] = {head.name: sorted(head.given) for head in heads}
    for head in heads:
        for name, rows in head.given.items():
            message.put_rows(f"{head.name} {name}", rows)


def load_message(
    tensors: Mapping[str, torch.Tensor], updates: Updates[SharedHead], *, keep: bool
) -> tuple[RankMessage, RankMessage]:
    """The message of a state to the others, and rank 0's own, which has all tensors complete.

    Args:
        keep: whether the reference is to be the policy as it is now.
    """
    prefixes = tuple(f"{head.name}." for head in updates.heads)
    state = {name: value for name, value in tensors.items() if name.startswith(("optimizer.", "reference."))}
    steps = {name: float(value) for name, value in state.items() if name.endswith(".step")}
    shaped = {name: state[name] for name in sorted(state.keys() - steps.keys())}
    heads = {name: value for name, value in tensors.items() if name.startswith(prefixes)}
    plain = {"like weights": list(shaped), "steps": steps, "optimizer": updates.optimizer.plain(), "keep": keep}
    return RankMessage("load", plain, heads), RankMessage("load", plain, shaped)
