"""What the types of transformers leave open: a model's output head, and where its weights are."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel


def output_head(model: "PreTrainedModel") -> "torch.nn.Linear":
    """From hidden states (..., D) to logits (..., V). Raises TypeError for a model that has none."""
    head: Any = model.get_output_embeddings()
    if head is None:
        raise TypeError(f"{type(model).__name__} has no output head: take a causal language model")
    return head


def move(model: "PreTrainedModel", target: "torch.device | torch.dtype | str") -> None:
    """Bring a model's weights to a device, or to another type, in place."""
    from torch import nn

    nn.Module.to(model, target)
