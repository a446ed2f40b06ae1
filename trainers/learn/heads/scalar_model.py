"""A model beside the policy: a copy of it, without output head, with layers of its own on top that give one number.

It begins as the policy is when reinforcement begins, and from then on has nothing in common with it. So what it says
does not move with the policy's hidden states. It costs the memory of a second model with its optimiser, and a pass of
its own over the tokens of a step.
"""

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import torch
from transformers import PreTrainedModel

from manyturn.agents.model.model_internals import host_copy, move
from manyturn.trainers.learn.heads.head_fits import JoinedRanks, Tensors, layers_on, own_tensors
from manyturn.trainers.learn.passes.forward import BodyReader, Reading
from manyturn.trainers.learn.passes.frozen_states import FrozenStates
from manyturn.trainers.learn.passes.optimizer_state import load_optimizer, optimizer_tensors
from manyturn.trainers.learn.passes.pass_budget import PassBudget
from manyturn.trainers.learn.passes.samples import Rows, Sample
from manyturn.trainers.learn.passes.trie.packing import Packing


class BodySettings(NamedTuple):
    """Learning of a body.

    Attributes:
        hidden: width of the layer in between; 0 for none.
        lr: learning rate of AdamW.
        trains_copy: whether more than the layers on top learns.
    """

    hidden: int
    lr: float
    trains_copy: bool = True


class BodyPasses(NamedTuple):
    """Passes of a body; see ``Reader``.

    Attributes:
        frozen: the policy's cache of layers that do not learn, which are the same in the copy.
    """

    budget: PassBudget
    packing: Packing = "padding"
    frozen: FrozenStates | None = None


def learn_in_float32(model: PreTrainedModel) -> None:
    """Have a copy of a policy whose weights are bfloat16 keep small updates, for which the policy has masters."""
    if any(weights.requires_grad and weights.itemsize < 4 for weights in model.parameters()):
        move(model, torch.float32)


class OwnBody:
    """The model and its optimiser.

    Args:
        name: prefixes the names of its tensors.
        policy: what it is a copy of. Of a policy with adapters, these alone are trained in the copy too.
        like: a tensor of the device where it goes, and of the type of the policy's output head.
        settings: how it learns.
        passes: how it reads.
    """

    def __init__(
        self,
        name: str,
        policy: PreTrainedModel,
        like: torch.Tensor,
        settings: BodySettings,
        passes: BodyPasses,
    ):
        self._name, self._policy = name, policy
        decoder = copy.deepcopy(policy.get_decoder())
        torch.nn.Module.to(decoder, like.device)
        learn_in_float32(decoder)
        self._copied = [p for p in decoder.parameters() if p.requires_grad]
        self.module = layers_on(name, policy.config.get_text_config().hidden_size, settings.hidden, like)
        for weights in self._copied:
            weights.requires_grad_(settings.trains_copy)
        self._trained = [*(self._copied if settings.trains_copy else ()), *self.module.parameters()]
        self._optimizer = torch.optim.AdamW(self._trained, lr=settings.lr, weight_decay=0.0, fused=True)
        self.reader = BodyReader(decoder, passes.budget, passes.packing, passes.frozen)

    @torch.no_grad()
    def copy_policy(self) -> None:
        """Become the policy as it is now, without momentum. The layers on top stay."""
        theirs = [p for p in self._policy.get_decoder().parameters() if p.requires_grad]
        for weights, value in zip(self._copied, theirs, strict=True):
            weights.copy_(value)
        self.forget()

    def forget(self) -> None:
        """Leave the momentum, which one that learns no more would keep in memory and in checkpoints."""
        self._optimizer.state.clear()

    def predict(self, states: torch.Tensor) -> torch.Tensor:
        """One number for each hidden state: (..., D) to (...)."""
        return self.module(states.to(next(self.module.parameters()).dtype))[..., 0]

    def over(self, samples: Sequence[Sample], watch: Callable[[Reading], Iterable[torch.Tensor]]) -> Rows:
        """The results of a pass over all samples without gradient: a tensor on the CPU for each."""
        return self.reader.over(samples, {"": watch})[""]

    def join(self, ranks: JoinedRanks) -> None:
        """Add up the gradients of all ranks, each of which has the whole body."""
        ranks.add_gradients(self._trained)

    def apply(self, max_norm: float) -> None:
        """Apply the accumulated gradient, scaled down to ``max_norm``; one that is not finite is dropped."""
        norm = torch.nn.utils.clip_grad_norm_(self._trained, max_norm)
        if torch.isfinite(norm):
            self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)

    def drop(self) -> None:
        """Leave the accumulated gradient out."""
        self._optimizer.zero_grad(set_to_none=True)

    def finish(self) -> None:
        """End a step: nothing is left to do."""

    def tensors(self) -> Tensors:
        """Weights and the optimiser's state, by name."""
        weights = {f"{self._name}.own.{key}": host_copy(value) for key, value in self.module.state_dict().items()}
        weights |= {f"{self._name}.body.{n}": host_copy(p) for n, p in enumerate(self._copied)}
        return weights | optimizer_tensors(f"{self._name}.optimizer", self._optimizer, self._trained)

    @torch.no_grad()
    def load_tensors(self, tensors: Mapping[str, torch.Tensor]) -> None:
        """The inverse of ``tensors``; those of other names are left alone."""
        self.module.load_state_dict(own_tensors(self._name, "own", tensors))
        saved = own_tensors(self._name, "body", tensors)
        for number, weights in enumerate(self._copied):
            weights.copy_(saved[str(number)])
        load_optimizer(f"{self._name}.optimizer", self._optimizer, self._trained, tensors)
