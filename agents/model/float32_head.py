"""An output head that computes logits in float32, out of hidden states and weights of whatever type.

In bfloat16 a logit of 20 has steps of 0.125, and so have log-probabilities that are computed from it: two programs that
add up in another order then judge tokens differently. Everything that applies the head of a model finds this one.

Source: MiniMax-M1, arXiv 2506.13585, where a head in float32 made the probabilities of engine and learner agree.
"""

import torch
from torch.nn.functional import linear
from transformers import PreTrainedModel

from manyturn.agents.model.model_internals import output_head


class Float32Head(torch.nn.Linear):
    """Takes the place of a model's head, with the same weights; what is saved is as before.

    Args:
        of: the head.
    """

    def __init__(self, of: torch.nn.Linear):
        super().__init__(of.in_features, of.out_features, of.bias is not None, device="meta")
        self.weight, self.bias = of.weight, of.bias

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Logits (..., V) in float32 or better, out of hidden states (..., D)."""
        return self.product(input, self.weight, self.bias)

    @staticmethod
    def product(states: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        """The same of some rows of the weights."""
        kind = torch.promote_types(weight.dtype, torch.float32)
        with torch.autocast(states.device.type, enabled=False):
            return linear(states.to(kind), weight.to(kind), None if bias is None else bias.to(kind))


def put_float32_head(model: PreTrainedModel) -> None:
    """Have a model compute logits in float32.

    Raises:
        TypeError: its head is no linear layer.
    """
    head = output_head(model)
    if type(head) is not torch.nn.Linear:
        raise TypeError(f"{type(model).__name__} has another head than a linear layer: leave model.head_dtype out")
    model.set_output_embeddings(Float32Head(head))
