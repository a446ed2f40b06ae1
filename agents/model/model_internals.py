"""Typed access to models of transformers: output head, layers, and copies of weights."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel


@contextmanager
def without_peft_warning() -> Iterator[None]:
    """Ignore the warning that peft causes by reading a name that transformers 5.23 has deprecated."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "`is_gradient_checkpointing` is deprecated", FutureWarning)
        yield


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


def allowed_logits(
    head: "torch.nn.Linear", states: "torch.Tensor", allowed: Sequence[Sequence[int]]
) -> "tuple[torch.Tensor, torch.Tensor, torch.Tensor]":
    """The logits of tokens that are possible, over the words that are possible anywhere instead of the vocabulary.

    Args:
        states: (P, D) hidden states.
        allowed: P non-empty sets of token ids.

    Returns:
        The W words in order; logits (P, W) in float32 or better, minus infinity where a word is impossible; and
        whether it is possible (P, W).
    """
    import torch
    from torch.nn.functional import linear

    words = sorted(set().union(*allowed))
    column = {word: number for number, word in enumerate(words)}
    rows = [row for row, tokens in enumerate(allowed) for _ in tokens]
    columns = [column[token] for tokens in allowed for token in tokens]
    possible = torch.zeros(len(allowed), len(words), dtype=torch.bool)
    possible[rows, columns] = True
    ids, possible = torch.tensor(words, device=states.device), possible.to(states.device)
    product = linear if type(head) is torch.nn.Linear else getattr(head, "product", None)
    if product is not None:
        logits = product(states, head.weight[ids], None if head.bias is None else head.bias[ids])
    else:
        logits = head(states)[:, ids]
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    return ids, logits.masked_fill(~possible, float("-inf")), possible


def move(model: "PreTrainedModel", target: "torch.device | torch.dtype | str") -> None:
    """Bring a model's weights to a device, or to another type, in place.

    Numbers that no checkpoint has keep their type, as where a model is loaded: in bfloat16 the frequencies of rotary
    positions would be off by up to 0.4 %, which turns the positions of long prompts by radians.
    """
    import torch

    own = [
        (module, name, buffer)
        for module in model.modules()
        for name, buffer in module.named_buffers(recurse=False)
        if name not in module.state_dict(keep_vars=True)
    ]
    torch.nn.Module.to(model, target)
    if isinstance(target, torch.dtype):
        for module, name, buffer in own:
            setattr(module, name, buffer)


def host_copy(tensor: "torch.Tensor") -> "torch.Tensor":
    """A copy in the host's memory, without one on the tensor's own device."""
    return tensor.detach().to("cpu", copy=True).contiguous()


def on_host(tensors: "Mapping[str, torch.Tensor]") -> "dict[str, torch.Tensor]":
    """Copies in the host's memory by name; names of one tensor are names of one copy too, as where weights are tied."""
    copies = dict[tuple[Any, ...], Any]()
    named = dict[str, Any]()
    for name, tensor in tensors.items():
        which = (tensor.device, tensor.dtype, tensor.data_ptr(), tensor.shape, tensor.stride())
        if which not in copies:
            copies[which] = host_copy(tensor)
        named[name] = copies[which]
    return named
