"""Attention of the nodes of a tree: each sees its ancestors and itself, and nothing else.

A run of nodes attends at once to the keys of its ancestors and to its own. No mask spans the pass, so that rows which
share nothing cost what they cost alone. The keys and values of ancestors are copied for each run; that copy is never
longer than the rows would be one after the other.

The kernel is PyTorch's, as for rows that are padded. It attends without a mask, and faster, where queries begin at the
first key. So a long run after a short beginning takes the queries of that beginning along, and drops what they find.
Another kernel that can attend to gathered keys, such as one of variable lengths on a GPU, takes the place of
``attend``.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from manyturn.agents.model.language_model import ModelError
from manyturn.trainers.learn.passes.trie.tree import Stretch, Tree

NAME = "manyturn_tree"
# Where each layer looks up its attention function; the library's own way to set it goes through all modules.
ATTENTION = "_attn_implementation"
_NEEDS = 'packing needs: set learner.packing = "padding"'
# Of the largest number; another position is further off.
_ROUNDING = {torch.float64: 1e-3, torch.float32: 1e-3, torch.float16: 0.02, torch.bfloat16: 0.05}
_LONG = 3  # times as long as its beginning a run is that takes the beginning's queries along
_LAYOUT = "manyturn_layout"  # the argument by which a layout comes to the attention of every layer


class Layout:
    """Places of the runs of a pass, for the attention of every layer.

    Args:
        device: of the model.
    """

    def __init__(self, runs: Sequence[Stretch], device: torch.device):
        self._lengths = [run.end - run.start for run in runs]
        self._shared = [len(run.before) for run in runs]
        self._extra = [len(run.before) if _LONG * len(run.before) <= run.end - run.start else 0 for run in runs]
        self._before = self._nodes([run.before for run in runs], device)
        self._taken = self._nodes([run.before[:extra] for run, extra in zip(runs, self._extra, strict=True)], device)
        sizes = zip(self._shared, self._extra, self._lengths, strict=True)
        self._masks = [self._mask(shared - extra, length, device) for shared, extra, length in sizes]

    @staticmethod
    def _nodes(of: Sequence[np.ndarray], device: torch.device) -> torch.Tensor | None:
        """The nodes of all runs, one after the other; None if there are none."""
        nodes = np.concatenate([np.empty(0, np.int64), *of])
        return torch.from_numpy(nodes).to(device) if len(nodes) else None

    @staticmethod
    def _mask(shared: int, length: int, device: torch.device) -> torch.Tensor | None:
        """Mask of the keys that a run's queries see (1, 1, length, shared + length); None: as usual, or all of them."""
        if not shared or length == 1:
            return None
        sees = torch.ones(length, shared + length, dtype=torch.bool, device=device)
        return sees.tril_(shared)[None, None]

    def attend(
        self, module: torch.nn.Module, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, **others: Any
    ) -> torch.Tensor:
        """Attention output of the nodes (1, heads, N, size): (1, N, heads, size)."""
        queries = self._after(query, self._taken, self._extra)
        keys, values = (self._after(states, self._before, self._shared) for states in (key, value))
        outputs = [
            sdpa_attention_forward(module, query_run, key_run, value_run, mask, **others)[0][:, extra:]
            for query_run, key_run, value_run, mask, extra in zip(
                queries, keys, values, self._masks, self._extra, strict=True
            )
        ]
        return torch.cat(outputs, 1)

    def _after(self, states: torch.Tensor, nodes: torch.Tensor | None, sizes: list[int]) -> Sequence[torch.Tensor]:
        """The states of each run (1, heads, length, size), after those of its share of some nodes."""
        own = states.split(self._lengths, 2)
        if nodes is None:
            return own
        shared = states.index_select(2, nodes).split(sizes, 2)
        return [torch.cat(both, 2) if len(both[0][0, 0]) else both[1] for both in zip(shared, own, strict=True)]


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


@torch.no_grad()
def attend_by_tree(decoder: PreTrainedModel) -> None:
    """Have a model find the layout of a pass. One without a layout is computed as before, to the bit.

    It stays so, because what is recomputed in a backward pass looks the function up again.

    Raises:
        ModelError: the model has another attention, or its nodes are not what rows of their own are.
    """
    config = decoder.config.get_text_config()
    if getattr(config, ATTENTION) == NAME:
        return
    name = type(decoder).__name__
    if getattr(config, ATTENTION) != "sdpa":
        raise ModelError(f"{name} has no attention of PyTorch's own, which {_NEEDS}")
    rows = [np.array(row) for row in ([1, 2, 3, 4, 5], [1, 2, 3, 6], [1, 2, 7, 4, 5, 2], [3, 2, 1])]
    apart = [decoder(input_ids=torch.from_numpy(row[None]).to(decoder.device), use_cache=False) for row in rows]
    setattr(config, ATTENTION, NAME)
    tree = Tree.of(rows, least=1)
    nodes = decoder(**tree_inputs(tree, decoder.device), use_cache=False).last_hidden_state[0]
    for alone, row in zip(apart, tree.rows, strict=True):
        states = alone.last_hidden_state[0]
        if not (nodes[row] - states).abs().max() <= _ROUNDING[states.dtype] * states.abs().max():
            setattr(config, ATTENTION, "sdpa")
            raise ModelError(
                f"{name} does not compute tokens by their position and what they attend to, which {_NEEDS}"
            )


def _attention(
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
    return layout.attend(module, query, key, value, **others), None


AttentionInterface.register(NAME, _attention)
AttentionMaskInterface.register(NAME, sdpa_mask)
