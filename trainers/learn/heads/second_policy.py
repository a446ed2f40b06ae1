"""A second language model beside the policy: a copy of it with its output head, which learns for itself."""

import copy
from collections.abc import Mapping

import torch
from transformers import PreTrainedModel

from manyturn.agents.model.model_internals import host_copy
from manyturn.trainers.learn.heads.head_fits import Tensors, own_tensors
from manyturn.trainers.learn.heads.scalar_model import BodyPasses, OwnBody, learn_in_float32
from manyturn.trainers.learn.passes.forward import Reader
from manyturn.trainers.learn.passes.optimizer_state import load_optimizer, optimizer_tensors


class OwnPolicy(OwnBody):
    """The model and its optimiser. It gives log-probabilities, and no numbers of its own.

    Args:
        name: prefixes the names of its tensors.
        policy: what it is a copy of. Of a policy with adapters, these alone are trained in the copy too.
        like: a tensor of the device where it goes.
        lr: learning rate of AdamW.
        temperature: of the distributions that its log-probabilities are of.
        passes: how it reads.
    """

    def __init__(
        self,
        name: str,
        policy: PreTrainedModel,
        like: torch.Tensor,
        lr: float,
        temperature: float,
        passes: BodyPasses,
    ):
        self._name, self._policy = name, policy
        model = copy.deepcopy(policy)
        torch.nn.Module.to(model, like.device)
        learn_in_float32(model)
        self._copied = self._trained = [p for p in model.parameters() if p.requires_grad]
        self._optimizer = torch.optim.AdamW(self._trained, lr=lr, weight_decay=0.0, fused=True)
        self.reader = Reader(model, passes.budget, temperature, passes.packing, passes.frozen)

    @torch.no_grad()
    def copy_policy(self) -> None:
        """Become the policy as it is now, without momentum."""
        theirs = [p for p in self._policy.parameters() if p.requires_grad]
        for weights, value in zip(self._copied, theirs, strict=True):
            weights.copy_(value)
        self.forget()

    def predict(self, states: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError("a second policy has log-probabilities only: read them")

    def tensors(self) -> Tensors:
        """Weights and the optimiser's state, by name."""
        weights = {f"{self._name}.body.{number}": host_copy(value) for number, value in enumerate(self._copied)}
        return weights | optimizer_tensors(f"{self._name}.optimizer", self._optimizer, self._trained)

    @torch.no_grad()
    def load_tensors(self, tensors: Mapping[str, torch.Tensor]) -> None:
        """The inverse of ``tensors``; those of other names are left alone."""
        saved = own_tensors(self._name, "body", tensors)
        for number, weights in enumerate(self._copied):
            weights.copy_(saved[str(number)])
        load_optimizer(f"{self._name}.optimizer", self._optimizer, self._trained, tensors)
