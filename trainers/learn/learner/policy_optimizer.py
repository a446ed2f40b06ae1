"""AdamW on the policy's weights: gradients are clipped, and those that are not finite dropped."""

from collections.abc import Mapping
from typing import Any

import torch

from manyturn.agents.model.model_internals import host_copy
from manyturn.trainers.learn.learner.learner_config import LearnerConfig
from manyturn.trainers.learn.learner.master_weights import HostWeights, MasterWeights, load_masters
from manyturn.trainers.learn.passes.optimizer_state import complete, load_optimizer, named_state, optimizer_tensors
from manyturn.trainers.learn.passes.pass_budget import LearningFailed


class PolicyOptimizer:
    """Applies what is accumulated in the gradients of a model.

    Args:
        model: its weights that require a gradient are changed in place.

    Attributes:
        trained: these weights.
        updates: how often they were changed.
        skipped: updates that were left out since ``begin_step``.
        lr: the present learning rate.
    """

    def __init__(self, model: torch.nn.Module, config: LearnerConfig):
        self._config = config
        self.trained = [p for p in model.parameters() if p.requires_grad]
        self._masters: MasterWeights | None = None
        if config.offload_optimizer:
            self._masters = HostWeights(self.trained)
        elif config.weights == "bfloat16":
            self._masters = MasterWeights(self.trained)
        self._stepped = self.trained if self._masters is None else self._masters.own
        self.adamw = torch.optim.AdamW(self._stepped, lr=config.lr, weight_decay=config.weight_decay, fused=True)
        self.updates = self.skipped = self._bad_in_a_row = 0
        self.lr = config.lr

    def begin_step(self, lr: float) -> None:
        """The updates to come have this learning rate."""
        self.lr, self.skipped = lr, 0
        for group in self.adamw.param_groups:
            group["lr"] = lr

    def update(self) -> float:
        """Clip and apply the accumulated gradient, unless it is not finite; returns its norm.

        Raises:
            LearningFailed: it was the third in a row that was not finite.
        """
        summed = self.trained if self._masters is None else self._masters.summed
        norm = complete(torch.nn.utils.clip_grad_norm_(summed, self._config.max_grad_norm))
        if torch.isfinite(norm):
            self._step()
            self.updates += 1
            self._bad_in_a_row = 0
        else:
            self._bad_in_a_row += 1
            self.skipped += 1
        self.drop()
        if self._bad_in_a_row == 3:
            raise LearningFailed(
                "three gradients in a row were not finite, so the run stops at its last checkpoint: begin another run "
                "with a lower learner.lr or learner.max_grad_norm (metrics.jsonl and turns/ hold the steps before)"
            )
        return float(norm)

    def drop(self) -> None:
        """Leave the accumulated gradient out."""
        for weights in (*self.trained, *self._stepped):
            weights.grad = None

    def _step(self) -> None:
        if self._masters is None:
            self.adamw.step()
            return
        self._masters.take_gradients()
        self.adamw.step()
        self._masters.give()

    def forget(self) -> None:
        """Begin again without momentum, from the weights as they are, whoever has changed them."""
        self.adamw.state.clear()
        if self._masters is not None:
            self._masters.follow()

    def plain(self) -> dict[str, Any]:
        """JSON values that a resumed run must go on from."""
        return {"updates": self.updates, "bad_in_a_row": self._bad_in_a_row}

    def load_plain(self, state: Mapping[str, Any]) -> None:
        """The inverse of ``plain``."""
        self.updates, self._bad_in_a_row = state["updates"], state["bad_in_a_row"]

    def tensors(self) -> dict[str, torch.Tensor]:
        """Its state by name, for checkpoints."""
        tensors = optimizer_tensors("optimizer", self.adamw, self._stepped)
        return tensors | (
            {} if self._masters is None else {n: host_copy(value) for n, value in self._masters.state().items()}
        )

    def state(self) -> dict[str, torch.Tensor]:
        """The same as it is held, which may be in a rank's shards."""
        return named_state("optimizer", self.adamw, self.trained)

    def load_tensors(self, tensors: Mapping[str, torch.Tensor]) -> None:
        """The inverse of ``tensors``; those of other names are left alone."""
        if self._masters is not None:
            self._masters.load(tensors)
        else:
            load_masters(tensors, self.trained)  # of a run that learnt in bfloat16 before
        load_optimizer("optimizer", self.adamw, self._stepped, tensors)
