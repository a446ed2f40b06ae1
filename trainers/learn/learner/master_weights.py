"""Float32 masters of weights that passes use in bfloat16.

    passes     weights in bfloat16; the gradient of a pass
    masters    the same weights in float32, AdamW's two moments, the sum of the gradients

AdamW changes the masters, and passes get them rounded. An update that is too small for bfloat16, whose numbers have
eight bits, adds up in the masters until it shows. Gradients of several passes are added in float32 too.

With ``learner.offload_optimizer`` all that the optimiser needs is in the host's memory instead: float32 weights,
AdamW's two moments, the gradient of the update. A step is made there, and its result is copied to the device. Where
weights on the device are bfloat16, the host's are their masters. Otherwise both have the same bits, and a step the
bits of one that is made where the weights are, if both processors compute it alike.

Source: mixed precision training, arXiv 1710.03740, section 3.1.
"""

from collections.abc import Mapping, Sequence
from functools import partial

import torch

_PREFIX = "master"


class MasterWeights:
    """Float32 masters next to the weights, on the same device.

    Args:
        weights: the model's own tensors.

    Attributes:
        own: the masters, for an optimiser.
    """

    def __init__(self, weights: Sequence[torch.Tensor]):
        self._weights = weights
        self.own = [self._like(each) for each in weights]
        with torch.no_grad():
            for each, own in zip(weights, self.own, strict=True):
                own.copy_(each)
        self._watch()

    def _like(self, weights: torch.Tensor) -> torch.Tensor:
        """A master without content."""
        return torch.empty_like(weights, dtype=torch.promote_types(weights.dtype, torch.float32), requires_grad=False)

    def _watch(self) -> None:
        """Have each pass add its gradient to that of the masters, layer by layer."""
        for weights, own in zip(self._weights, self.own, strict=True):
            weights.register_post_accumulate_grad_hook(partial(_add_gradient, own))

    @property
    def summed(self) -> Sequence[torch.Tensor]:
        """The tensors that have the gradient of an update, to be clipped."""
        return self.own

    def take_gradients(self) -> None:
        """Give the masters the gradient of the update: they have it."""

    @torch.no_grad()
    def follow(self) -> None:
        """Take over what somebody else has made of the weights, such as who loads a checkpoint."""
        for weights, own in zip(self._weights, self.own, strict=True):
            if not torch.equal(own.to(weights.dtype), weights.detach().to(own.device)):
                own.copy_(weights)

    @torch.no_grad()
    def give(self) -> None:
        """Round the masters to the weights."""
        for weights, own in zip(self._weights, self.own, strict=True):
            weights.copy_(own)

    def state(self) -> dict[str, torch.Tensor]:
        """Masters that are not the weights to the bit, by name."""
        pairs = enumerate(zip(self._weights, self.own, strict=True))
        return {f"{_PREFIX}.{number}": own for number, (weights, own) in pairs if own.dtype != weights.dtype}

    @torch.no_grad()
    def load(self, tensors: Mapping[str, torch.Tensor]) -> None:
        """The inverse of ``state``, once the weights are loaded."""
        self.follow()
        load_masters(tensors, self.own)


class HostWeights(MasterWeights):
    """The host's side.

    Args:
        weights: the model's own tensors.

    Attributes:
        own: float32 weights for an optimiser, in page-locked memory where a GPU reads it.
    """

    def __init__(self, weights: Sequence[torch.Tensor]):
        super().__init__(weights)
        self._gradients = [torch.empty_like(each) for each in self.own]

    def _like(self, weights: torch.Tensor) -> torch.Tensor:
        dtype, pins = torch.promote_types(weights.dtype, torch.float32), type(weights.data) is torch.Tensor
        return torch.empty(weights.shape, dtype=dtype, pin_memory=pins and weights.device.type == "cuda")

    def _watch(self) -> None:
        """Gradients are accumulated on the device, in the weights' type."""

    @property
    def summed(self) -> Sequence[torch.Tensor]:
        return self._weights

    @torch.no_grad()
    def take_gradients(self) -> None:
        """Give the host's weights the gradients of the device's."""
        for weights, own, buffer in zip(self._weights, self.own, self._gradients, strict=True):
            own.grad = None if weights.grad is None else buffer.copy_(weights.grad)


@torch.no_grad()
def load_masters(tensors: Mapping[str, torch.Tensor], into: Sequence[torch.Tensor]) -> None:
    """Copy masters of a checkpoint; tensors of other names are left alone."""
    for name, value in tensors.items():
        if name.startswith(f"{_PREFIX}."):
            into[int(name.removeprefix(f"{_PREFIX}."))].copy_(value)


@torch.no_grad()
def _add_gradient(own: torch.Tensor, weights: torch.Tensor) -> None:
    gradient = weights.grad
    assert gradient is not None, "the hook runs after it was accumulated"
    own.grad = gradient.to(own.dtype) if own.grad is None else own.grad.add_(gradient)
    weights.grad = None
