"""Weights that AdamW changes in the host's memory, and that passes use on another device.

    device    weights, of whichever type passes want; their gradients while they are accumulated
    host      the same weights in float32, AdamW's two moments, the gradient of the update

A step is made in the host's memory, in float32, and its result is copied to the device. Where weights on the device are
bfloat16, small updates still add up in the host's. Otherwise both have the same bits, and a step the bits of one that
is made where the weights are, if both processors compute it alike.
"""

from collections.abc import Mapping, Sequence

import torch

_PREFIX = "master"


class HostWeights:
    """The host's side.

    Args:
        weights: the model's own tensors.

    Attributes:
        own: float32 weights for an optimiser, in page-locked memory where a GPU reads it.
    """

    def __init__(self, weights: Sequence[torch.Tensor]):
        self._weights = weights
        self.own = [self._like(each) for each in weights]
        self._gradients = [torch.empty_like(each) for each in self.own]
        self.follow()

    @staticmethod
    def _like(weights: torch.Tensor) -> torch.Tensor:
        dtype, pins = torch.promote_types(weights.dtype, torch.float32), type(weights.data) is torch.Tensor
        return torch.empty(weights.shape, dtype=dtype, pin_memory=pins and weights.device.type == "cuda")

    @torch.no_grad()
    def follow(self) -> None:
        """Take over what somebody else has made of the weights, such as who loads a checkpoint."""
        for weights, own in zip(self._weights, self.own, strict=True):
            if not torch.equal(own.to(weights.dtype), weights.detach().cpu()):
                own.copy_(weights)

    @torch.no_grad()
    def take_gradients(self) -> None:
        """Give the host's weights the gradients of the device's."""
        for weights, own, buffer in zip(self._weights, self.own, self._gradients, strict=True):
            own.grad = None if weights.grad is None else buffer.copy_(weights.grad)

    @torch.no_grad()
    def give(self) -> None:
        """The device's weights become the host's."""
        for weights, own in zip(self._weights, self.own, strict=True):
            weights.copy_(own)

    def state(self) -> dict[str, torch.Tensor]:
        """Tensors that are in the CPU's weights and not in the device's, by name."""
        pairs = enumerate(zip(self._weights, self.own, strict=True))
        return {f"{_PREFIX}.{number}": own for number, (weights, own) in pairs if own.dtype != weights.dtype}

    @torch.no_grad()
    def load(self, tensors: Mapping[str, torch.Tensor]) -> None:
        """The inverse of ``state``, once the device's weights are loaded."""
        self.follow()
        for name, value in tensors.items():
            if name.startswith(f"{_PREFIX}."):
                self.own[int(name.removeprefix(f"{_PREFIX}."))].copy_(value)
