"""Weights that AdamW changes in the host's memory, and that passes use on another device.

    device    weights, of whichever type passes want; their gradients while they are accumulated
    host      the same weights in float32, AdamW's two moments, the gradient of the update

A step is made in the host's memory, in float32, and its result is copied to the device. Where weights on the device are
bfloat16, the host's are their masters. Otherwise both have the same bits, and a step the bits of one that is made where
the weights are, if both processors compute it alike.
"""

from collections.abc import Sequence

import torch

from manyturn.trainers.learn.passes.master_weights import MasterWeights


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
