"""Attention of the runs of a tree, one call of PyTorch's kernel for each.

A run of nodes attends at once to the keys of its ancestors and to its own. No mask spans the pass, so that rows which
share nothing cost what they cost alone. The keys and values of ancestors are copied for each run; that copy is never
longer than the rows would be one after the other.

The kernel attends without a mask, and faster, where queries begin at the first key. So a long run after a short
beginning takes the queries of that beginning along, and drops what they find.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from manyturn.trainers.learn.passes.trie.tree import Stretch

_LONG = 3  # times as long as its beginning a run is that takes the beginning's queries along


def _takes_queries(run: Stretch) -> bool:
    """True for a run that takes the queries of its beginning along."""
    return run.hidden is None and _LONG * len(run.before) <= run.end - run.start


def _branching(run: Stretch, device: torch.device) -> torch.Tensor:
    """Mask of the keys that the queries of nodes that branch see: what comes before them, and their own ancestors."""
    assert run.hidden is not None, "a run without branches has a mask by its lengths"
    seen = np.concatenate([np.ones((len(run.hidden), len(run.before)), bool), ~run.hidden], 1)
    return torch.from_numpy(seen).to(device)[None, None]


class Pieces:
    """The runs of a pass, each a piece of its own.

    Args:
        device: of the model.
    """

    def __init__(self, runs: Sequence[Stretch], device: torch.device):
        self._lengths = [run.end - run.start for run in runs]
        self._shared = [len(run.before) for run in runs]
        self._extra = [len(run.before) if _takes_queries(run) else 0 for run in runs]
        self._before = self._nodes([run.before for run in runs], device)
        self._taken = self._nodes([run.before[:extra] for run, extra in zip(runs, self._extra, strict=True)], device)
        sizes = zip(runs, self._shared, self._extra, self._lengths, strict=True)
        self._masks = [
            self._mask(shared - extra, length, device) if run.hidden is None else _branching(run, device)
            for run, shared, extra, length in sizes
        ]

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
