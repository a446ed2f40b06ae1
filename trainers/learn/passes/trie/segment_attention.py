"""Attention of all runs of a tree in one call of variable lengths, without masks and without repeated heads.

The keys of a run's ancestors and its own make one segment of keys, at whose end its queries stand: each query sees the
keys up to its own. So the causal kernel of variable lengths computes what a tree needs, once the keys of all segments
are gathered one after the other. It reads the keys of a group of query heads where they are.

On a GPU the call is ``torch.nn.attention.varlen.varlen_attn``, with flash kernels for both directions. Elsewhere it is
the operation ``manyturn::segment_attention`` below, which has the same contract and is what the kernel is judged by. It
holds the scores of a segment at once.
"""

import inspect
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from torch.nn.attention.varlen import varlen_attn
from torch.utils.flop_counter import register_flop_formula

from manyturn.trainers.learn.passes.trie.tree import Stretch

# PyTorch 2.11 reads fewer heads of keys without being told.
_GROUPED: dict[str, Any] = {"enable_gqa": True} if "enable_gqa" in inspect.signature(varlen_attn).parameters else {}
_CAUSAL = (-1, 0)  # all keys before a query, none after it, with queries at the end of their keys


class Segments:
    """The runs of a pass as segments of keys.

    Args:
        device: of the model.

    Attributes:
        queries, keys: the length of each run, and of each segment.
    """

    def __init__(self, runs: Sequence[Stretch], device: torch.device):
        self.queries = [run.end - run.start for run in runs]
        self.keys = [len(run.before) + length for run, length in zip(runs, self.queries, strict=True)]
        both = [each for run in runs for each in (run.before, np.arange(run.start, run.end))]
        nodes = torch.from_numpy(np.concatenate([np.empty(0, np.int64), *both]))
        self._nodes = nodes.to(device) if self.keys != self.queries else None
        self._query_ends, self._key_ends = (self._ends(lengths, device) for lengths in (self.queries, self.keys))

    @staticmethod
    def _ends(lengths: Sequence[int], device: torch.device) -> torch.Tensor:
        return torch.from_numpy(np.cumsum([0, *lengths], dtype=np.int32)).to(device)

    def attend(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scale: float) -> torch.Tensor:
        """Attention output of the nodes (1, N, heads, size).

        Args:
            query: (1, heads, N, size).
            key, value: (1, groups, N, size), of one type; ``groups`` divides ``heads``.
        """
        query, key, value = (states[0].transpose(0, 1) for states in (query, key, value))
        if self._nodes is not None:
            key, value = (states.index_select(0, self._nodes) for states in (key, value))
        if query.device.type != "cuda":
            return _segment_attention(query, key, value, self.queries, self.keys, scale)[None]
        most = max(self.queries), max(self.keys)
        ends = self._query_ends, self._key_ends
        output: Any = varlen_attn(query, key, value, *ends, *most, window_size=_CAUSAL, scale=scale, **_GROUPED)
        return output[None]


class _Segment(NamedTuple):
    """One segment: where its queries and keys are."""

    queries: slice
    keys: slice

    def grouped(self, states: torch.Tensor, groups: int) -> torch.Tensor:
        """Of (N, heads, size) those of the queries, each group's heads one after the other: (groups, R * Q, size)."""
        own = _summed(states[self.queries])
        return own.unflatten(1, (groups, -1)).permute(1, 2, 0, 3).flatten(1, 2)

    def by_group(self, states: torch.Tensor) -> torch.Tensor:
        """Of (K, groups, size) those of the keys: (groups, K, size)."""
        return _summed(states[self.keys]).transpose(0, 1)

    def put(self, into: torch.Tensor, states: torch.Tensor) -> None:
        """Write the inverse of ``grouped`` to its place."""
        length, heads = self.queries.stop - self.queries.start, into.shape[1]
        into[self.queries] = states.reshape(heads, length, -1).transpose(0, 1).to(into.dtype)

    def shares(self, query: torch.Tensor, key: torch.Tensor, scale: float) -> torch.Tensor:
        """Shares of the keys (groups, R * Q, K) that add up to 1 for each query."""
        scores = (query @ key.mT).mul_(scale)
        length = self.queries.stop - self.queries.start
        after = torch.ones(length, key.shape[1], dtype=torch.bool, device=key.device).triu_(key.shape[1] - length + 1)
        scores.unflatten(1, (-1, length)).masked_fill_(after, float("-inf"))
        return scores.softmax(-1)

    @classmethod
    def all(cls, queries: Sequence[int], keys: Sequence[int]) -> Iterator[Self]:
        query = key = 0
        for more_queries, more_keys in zip(queries, keys, strict=True):
            yield cls(slice(query, query + more_queries), slice(key, key + more_keys))
            query, key = query + more_queries, key + more_keys


def _summed(states: torch.Tensor) -> torch.Tensor:
    """In a type that sums are computed in."""
    return states.to(torch.promote_types(states.dtype, torch.float32))


@torch.library.custom_op("manyturn::segment_attention", mutates_args=())
def _segment_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    queries: Sequence[int],
    keys: Sequence[int],
    scale: float,
) -> torch.Tensor:
    """Output (N, heads, size) for queries (N, heads, size), and keys and values (K, groups, size)."""
    output = torch.empty_like(query, memory_format=torch.contiguous_format)
    for segment in _Segment.all(queries, keys):
        own = segment.grouped(query, key.shape[1])
        segment.put(output, segment.shares(own, segment.by_group(key), scale) @ segment.by_group(value))
    return output


@_segment_attention.register_fake
def _(query: torch.Tensor, *_: Any) -> torch.Tensor:
    return torch.empty_like(query, memory_format=torch.contiguous_format)


@torch.library.custom_op("manyturn::segment_attention_backward", mutates_args=())
def _segment_attention_backward(
    slope: torch.Tensor,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    output: torch.Tensor,
    queries: Sequence[int],
    keys: Sequence[int],
    scale: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The gradients of queries, keys and values.

    With shares p of scores s, output o = p v: dv = p' do, dp = do v', ds = p (dp - sum(do o)), dq = ds k, dk = ds' q.
    """
    by_query, by_key, by_value = (
        torch.empty_like(of, memory_format=torch.contiguous_format) for of in (query, key, value)
    )
    groups = key.shape[1]
    for segment in _Segment.all(queries, keys):
        own, down, out = (segment.grouped(states, groups) for states in (query, slope, output))
        of_key, of_value = segment.by_group(key), segment.by_group(value)
        shares = segment.shares(own, of_key, scale)
        by_value[segment.keys] = (shares.mT @ down).transpose(0, 1).to(by_value.dtype)
        by_scores = (down @ of_value.mT).sub_((down * out).sum(-1, keepdim=True)).mul_(shares).mul_(scale)
        segment.put(by_query, by_scores @ of_key)
        by_key[segment.keys] = (by_scores.mT @ own).transpose(0, 1).to(by_key.dtype)
    return by_query, by_key, by_value


@_segment_attention_backward.register_fake
def _(slope: Any, query: Any, key: Any, value: Any, *_: Any) -> tuple[torch.Tensor, ...]:
    return tuple(torch.empty_like(of, memory_format=torch.contiguous_format) for of in (query, key, value))


def _keep(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    query, key, value, *ctx.lengths = inputs
    ctx.save_for_backward(query, key, value, output)


def _backward(ctx: Any, slope: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
    return (*_segment_attention_backward(slope, *ctx.saved_tensors, *ctx.lengths), None, None, None)


_segment_attention.register_autograd(_backward, setup_context=_keep)


def _operations(query: Sequence[int], queries: Sequence[int], keys: Sequence[int], products: int) -> int:
    """Floating-point operations of so many products for each pair of a query and a key that it sees."""
    pairs = sum(own * (seen - own) + own * (own + 1) // 2 for own, seen in zip(queries, keys, strict=True))
    return 2 * products * query[1] * query[2] * pairs


@register_flop_formula(torch.ops.manyturn.segment_attention)
def _forward_operations(query: Any, key: Any, value: Any, queries: Any, keys: Any, *_: Any, **__: Any) -> int:
    """Scores and values."""
    return _operations(query, queries, keys, 2)


@register_flop_formula(torch.ops.manyturn.segment_attention_backward)
def _backward_operations(
    slope: Any, query: Any, key: Any, value: Any, output: Any, queries: Any, keys: Any, *_: Any, **__: Any
) -> int:
    """The scores again, and what the docstring of the operation lists."""
    return _operations(query, queries, keys, 5)
