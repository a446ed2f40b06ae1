"""Attention of the nodes of a tree: each sees its ancestors and itself, and nothing else.

There are two ways, and both give the same. On a GPU all runs attend in one call of variable lengths
(``segment_attention.py``), which launches few operations. On a CPU each run attends in a call of its own
(``piece_attention.py``), which takes less time there; so it is too for types and sizes that the GPU's kernel has not,
and in passes with listed commands, which were never run on a GPU.
"""

import contextlib
import warnings
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedConfig, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from manyturn.agents.model.language_model import ModelError
from manyturn.trainers.learn.passes.trie.piece_attention import Pieces
from manyturn.trainers.learn.passes.trie.segment_attention import Segments
from manyturn.trainers.learn.passes.trie.tree import Stretch, Tree

IN_PIECES, IN_ONE_CALL = "manyturn_tree", "manyturn_tree_in_one_call"
# Where each layer looks up its attention function; the library's own way to set it goes through all modules.
ATTENTION = "_attn_implementation"
_NEEDS = 'packing needs: set learner.packing = "padding"'
# Of the largest number; another position is further off.
_ROUNDING = {torch.float64: 1e-3, torch.float32: 1e-3, torch.float16: 0.02, torch.bfloat16: 0.05}
_LAYOUT = "manyturn_layout"  # the argument by which a layout comes to the attention of every layer
_FLASH_TYPES, _FLASH_SIZE, _FLASH_STEP = (torch.float16, torch.bfloat16), 256, 8  # of a head, on a GPU


class Layout:
    """The runs of a pass, for the attention of every layer.

    Args:
        device: of the model.
    """

    def __init__(self, runs: Sequence[Stretch], device: torch.device):
        self._runs, self._device = runs, device

    @property
    def has_branches(self) -> bool:
        """True if some nodes branch, which one call of variable lengths cannot say."""
        return any(run.hidden is not None for run in self._runs)

    @cached_property
    def pieces(self) -> Pieces:
        return Pieces(self._runs, self._device)

    @cached_property
    def segments(self) -> Segments:
        return Segments(self._runs, self._device)


def tree_inputs(tree: Tree, device: torch.device) -> dict[str, Any]:
    """Inputs of a decoder that ``attend_by_tree`` was called with for a pass over the nodes, a batch of one row."""
    ids, depth = (torch.from_numpy(numbers).to(device)[None] for numbers in (tree.ids, tree.depth))
    # A mask of four dimensions is the caller's own, and none is made; the layout says what it would.
    nothing = torch.ones(1, 1, 1, 1, dtype=torch.bool, device=device)
    layout = {_LAYOUT: Layout(tree.runs, device)}
    return {"input_ids": ids, "position_ids": depth, "attention_mask": nothing, **layout}


def at_nodes(tree: Tree, rows: Sequence[torch.Tensor]) -> torch.Tensor:
    """Hidden states of the tree's rows (T, D), each with its own, as states of its nodes: (1, N, D)."""
    states = rows[0].new_empty(len(tree.ids), rows[0].shape[-1])
    for place, row in zip(tree.rows, rows, strict=True):
        states[torch.from_numpy(place).to(row.device)] = row
    return states[None]


def tree_attentions(device: torch.device, config: PreTrainedConfig) -> tuple[str, ...]:
    """Names of the ways in which a model can attend on a device, the faster one first."""
    text = config.get_text_config()
    size = getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads
    is_flash = size <= _FLASH_SIZE and not size % _FLASH_STEP
    return (IN_ONE_CALL, IN_PIECES) if device.type == "cuda" and is_flash else (IN_PIECES,)


def attend_by_tree(decoder: PreTrainedModel) -> None:
    """Have a model find the layout of a pass. One without a layout is computed as before, to the bit.

    It stays so, because what is recomputed in a backward pass looks the function up again.

    Raises:
        ModelError: the model has another attention, or its nodes are not what rows of their own are.
    """
    config = decoder.config.get_text_config()
    if getattr(config, ATTENTION) in (IN_PIECES, IN_ONE_CALL):
        return
    name = type(decoder).__name__
    if getattr(config, ATTENTION) != "sdpa":
        raise ModelError(f"{name} has no attention of PyTorch's own, which {_NEEDS}")
    for attention in tree_attentions(decoder.device, config):
        reason = "other numbers"
        try:
            if _is_alike(decoder, attention):
                return
        except (RuntimeError, ValueError) as error:  # a card or a PyTorch without the kernel
            if attention == IN_PIECES:
                raise
            reason = str(error).partition("\n")[0]
        setattr(config, ATTENTION, "sdpa")
        if attention == IN_ONE_CALL:
            warnings.warn(f"attention in one call fails here ({reason}): each run attends by itself", stacklevel=2)
    raise ModelError(f"{name} does not compute tokens by their position and what they attend to, which {_NEEDS}")


@torch.no_grad()
def _is_alike(decoder: PreTrainedModel, attention: str) -> bool:
    """True if the nodes of a tree are what its rows are by themselves; the decoder has the attention then."""
    rows = [np.array(row) for row in ([1, 2, 3, 4, 5], [1, 2, 3, 6], [1, 2, 7, 4, 5, 2], [3, 2, 1])]
    on_gpu = attention == IN_ONE_CALL and decoder.device.type == "cuda"
    with torch.autocast("cuda", torch.bfloat16) if on_gpu else contextlib.nullcontext():
        apart = [decoder(input_ids=torch.from_numpy(row[None]).to(decoder.device), use_cache=False) for row in rows]
        setattr(decoder.config.get_text_config(), ATTENTION, attention)
        tree = Tree.of(rows, least=1)
        nodes = decoder(**tree_inputs(tree, decoder.device), use_cache=False).last_hidden_state[0]
    bound = _ROUNDING[torch.bfloat16 if on_gpu else nodes.dtype]
    for alone, row in zip(apart, tree.rows, strict=True):
        states = alone.last_hidden_state[0]
        if not (nodes[row] - states).abs().max() <= bound * states.abs().max():
            return False
    return True


def _in_pieces(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    **others: Any,
) -> tuple[torch.Tensor, None]:
    """The attention function of a model, by the contract of transformers."""
    layout = others.pop(_LAYOUT, None)
    if layout is None:
        return sdpa_attention_forward(module, query, key, value, attention_mask, **others)
    return layout.pieces.attend(module, query, key, value, **others), None


def _in_one_call(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    **others: Any,
) -> tuple[torch.Tensor, None]:
    """The same in one call, where there is a layout and the kernel computes in the model's type."""
    kind, layout = _computed(query), others.get(_LAYOUT)
    on_gpu = query.device.type == "cuda"
    if layout is None or layout.has_branches or others.get("dropout") or (on_gpu and kind not in _FLASH_TYPES):
        return _in_pieces(module, query, key, value, attention_mask, **others)
    scale = others.get("scaling") or query.shape[-1] ** -0.5
    return layout.segments.attend(query.to(kind), key.to(kind), value.to(kind), scale), None


def _computed(query: torch.Tensor) -> torch.dtype:
    """The type in which PyTorch's own attention would compute."""
    device = query.device.type
    if query.dtype != torch.float64 and torch.is_autocast_enabled(device):
        return torch.get_autocast_dtype(device)
    return query.dtype


for _name, _function in ((IN_PIECES, _in_pieces), (IN_ONE_CALL, _in_one_call)):
    AttentionInterface.register(_name, _function)
    AttentionMaskInterface.register(_name, sdpa_mask)
