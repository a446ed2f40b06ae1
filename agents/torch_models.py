"""What the types of transformers leave open: a model's output head, its layers, and where its weights are."""

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


def layers_of(decoder: "PreTrainedModel") -> "tuple[str, torch.nn.ModuleList]":
    """The layers of a model without output head, in order, and their name in it. Raises TypeError if it has none."""
    from torch import nn

    count = decoder.config.get_text_config().num_hidden_layers
    for name, child in decoder.named_children():
        if isinstance(child, nn.ModuleList) and len(child) == count:
            return name, child
    raise TypeError(f"{type(decoder).__name__} has no list of its {count} layers: leave learner.lora_layers out")


def move(model: "PreTrainedModel", target: "torch.device | torch.dtype | str") -> None:
    """Bring a model's weights to a device, or to another type, in place."""
    from torch import nn

    nn.Module.to(model, target)
