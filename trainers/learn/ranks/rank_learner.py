"""What each rank has of a policy that is learnt, and what it does when rank 0 says so.

Rank 0 does the same as the others, from the same message, and has the whole policy besides: it reads steps with it,
and the engine draws with its weights. They are put together after each step, in rank 0 alone.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from transformers import PreTrainedModel

from manyturn.trainers.learn.before_update import BeforeUpdate
from manyturn.trainers.learn.epo import EntropyRange
from manyturn.trainers.learn.forward import Reader, recompute_activations
from manyturn.trainers.learn.heads import SharedHead
from manyturn.trainers.learn.learner_config import LearnerConfig
from manyturn.trainers.learn.objective import ObjectiveConfig, RegulariserState
from manyturn.trainers.learn.pass_budget import PassBudget
from manyturn.trainers.learn.policy_optimizer import PolicyOptimizer
from manyturn.trainers.learn.ranks.group import Ranks
from manyturn.trainers.learn.ranks.message import RankMessage
from manyturn.trainers.learn.ranks.sharing import Sharded, SharedPasses, spread
from manyturn.trainers.learn.updates import Updates

_ROWS = ("advantage", "old", "kept", "reference", "weight")


class RankLearner:
    """A rank's shard of a policy, its optimiser and its passes.

    Args:
        model: a copy of the policy on the CPU, the same in every rank; it is changed in place.
        device: where the shard goes.
        temperature: see ``Learner``.
        heads: those that learn along with the policy, whole in each rank.
    """

    def __init__(
        self,
        ranks: Ranks,
        model: PreTrainedModel,
        device: torch.device,
        config: LearnerConfig,
        objective: ObjectiveConfig,
        temperature: float,
        heads: Sequence[SharedHead],
    ):
        reader = Reader(model, PassBudget(config.micro_tokens), temperature, config.packing)
        if config.gradient_checkpointing:
            recompute_activations(model)
        self._sharded = Sharded(model, ranks, device)
        self.optimizer = PolicyOptimizer(self._sharded, config)
        passes = SharedPasses(ranks, self._sharded)
        self.updates = _Joined(config, objective, reader, self.optimizer, heads, passes, ranks=ranks)

    def do(self, message: RankMessage, whole: PreTrainedModel | None = None) -> Any:
        """Do as rank 0 says, all ranks at once; what comes of it.

        Args:
            whole: the policy, in rank 0.
        """
        match message.what:
            case "step":
                found: Any = self.updates.of_step(*self._step(message))
                self._sharded.give(whole)
            case "imitate":
                rows, plain = message.given_rows("weights"), message.plain
                found = self.updates.imitate(message.samples(), rows, plain["whole"], plain["lr"])
                self._sharded.give(whole)
            case "state":
                found = self.optimizer.tensors()
            case "load":
                found = self._load(message, whole)
            case _:
                raise ValueError(f"rank 0 says {message.what!r}: have every rank run the same version of manyturn")
        return found

    def _step(self, message: RankMessage) -> tuple[BeforeUpdate, RegulariserState, tuple[Any, ...], Any]:
        plain, samples = message.plain, message.samples()
        self.optimizer.begin_step(plain["lr"])
        for head in self.updates.heads:
            head.take(samples, {name: message.given_rows(f"{head.name} {name}") for name in plain["heads"][head.name]})
        advantage, old, kept = (message.given_rows(name) for name in _ROWS[:3])
        before = BeforeUpdate(samples, advantage, old, kept, message.rows("reference"), message.rows("weight"))
        reference, weight = plain["entropy_range"]
        now = RegulariserState(plain["kl_coef"], EntropyRange(tuple(reference), weight))
        kept_E = message.tensors.get("kept_E")
        return before, now, tuple(plain["key"]), None if kept_E is None else kept_E.numpy()

    @torch.no_grad()
    def _load(self, message: RankMessage, whole: PreTrainedModel | None) -> None:
        """Weights, the optimiser's state and heads, as rank 0 has them."""
        plain, adamw = message.plain, self.optimizer.adamw
        self._sharded.take(whole)
        adamw.state.clear()
        for name in plain["moments"]:
            number, field = name.split(".")
            weights = self.optimizer.trained[int(number)]
            moment = adamw.state[weights][field] = torch.zeros_like(weights)
            spread(moment, message.tensors[name] if whole is not None else None, weights.device)
        for number, steps in plain["steps"].items():
            adamw.state[self.optimizer.trained[int(number)]]["step"] = torch.tensor(steps)
        self.optimizer.load_plain(plain["optimizer"])
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
    """What every rank needs for the updates of a step."""
    message = RankMessage(
        "step", {"key": list(key), "lr": lr, "kl_coef": now.kl_coef, "entropy_range": now.entropy_range}
    )
    message.put_samples(before.samples)
    for name in _ROWS:
        message.put_rows(name, getattr(before, name))
    if kept_E is not None:
        message.tensors["kept_E"] = torch.as_tensor(kept_E)
    message.plain["heads"] = {head.name: sorted(head.given) for head in heads}
    for head in heads:
        for name, rows in head.given.items():
            message.put_rows(f"{head.name} {name}", rows)
    return message


def load_message(
    tensors: Mapping[str, torch.Tensor], optimizer: Mapping[str, Any], heads: Sequence[SharedHead]
) -> tuple[RankMessage, RankMessage]:
    """What the others are told of a state, and what rank 0 does it from, which has the moments whole."""
    prefixes = tuple(f"{head.name}." for head in heads)
    state = {name.removeprefix("optimizer."): value for name, value in tensors.items() if name.startswith("optimizer.")}
    steps = {name.split(".")[0]: float(value) for name, value in state.items() if name.endswith(".step")}
    moments = sorted(name for name in state if not name.endswith(".step"))
    others = {name: value for name, value in tensors.items() if name.startswith(prefixes)}
    plain = {"moments": moments, "steps": steps, "optimizer": dict(optimizer)}
    return RankMessage("load", plain, others), RankMessage(
        "load", plain, others | {name: state[name] for name in moments}
    )
