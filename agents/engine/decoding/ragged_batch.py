"""One forward pass over the new tokens of many rows, laid end to end, and the attention of each row to its own past.

Rows that read a prompt and rows that draw the next token go together, and nothing is padded but attention: rows alike
in length attend in one piece, which is small enough that the copy of their keys and values stays small too.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface, Cache

from manyturn.agents.engine.decoding.page_pool import PAGE, PagePool
from manyturn.agents.engine.decoding.row import Row
from manyturn.agents.engine.engine import EngineError

_PADDING = 1.5  # attention that is computed, for what is needed, at most
_MASK_ENTRIES = 2**22  # of a piece of several rows
NAME = "manyturn_paged"


class _Piece(NamedTuple):
    """Some rows that attend together.

    Attributes:
        start, end: their tokens in the pass.
        rows, new: how many rows, and tokens of each, the shorter ones padded.
        spread: (rows * new) the token of each query, unless that is all of them in order.
        gather: the query of each token, likewise.
        table: (rows * pages) the pages of each row.
        seen: positions that the longest row sees.
        mask: (rows, 1, heads in a group * new, seen) added to the scores, or nothing: all see all, or a row of more
            than one token sees what is before each.
    """

    start: int
    end: int
    rows: int
    new: int
    spread: torch.Tensor | None
    gather: torch.Tensor | None
    table: torch.Tensor
    seen: int
    mask: torch.Tensor | None


class PassPlan(Cache):
    """The plan of one pass, which the model takes for its cache.

    Args:
        pool: where keys and values are.
        rows: those that take part.
        counts: new tokens of each.
        groups: query heads that share a key-value head.
        workspace: bytes that the copy of one layer's keys and values of a piece may take.
        dtype: of the model.

    Attributes:
        rows: those that take part, in the order of their tokens.
        counts: new tokens of each.
        ids, positions: (T,) of the new tokens.
        ends: (rows,) the last token of each.
    """

    def __init__(
        self,
        pool: PagePool,
        rows: Sequence[Row],
        counts: Sequence[int],
        groups: int,
        workspace: int,
        dtype: torch.dtype,
    ):
        super().__init__(layers=[])
        self._pool, self._groups, self._dtype, self._device = pool, groups, dtype, pool.device
        # Stable, so that equal rows stay in their order.
        order = sorted(range(len(rows)), key=lambda i: (counts[i], rows[i].computed))
        self.rows = [rows[i] for i in order]
        self.counts = [counts[i] for i in order]
        self._new = np.array(self.counts)
        self._past = np.array([row.computed for row in self.rows])
        self._total = self._past + self._new
        self._starts = np.concatenate([[0], np.cumsum(self._new)])
        width = int(-(-self._total.max() // PAGE))
        self._tables = np.zeros((len(rows), width), np.int64)
        for table, row, total in zip(self._tables, self.rows, self._total, strict=True):
            used = -(-total // PAGE)
            table[:used] = row.pages[:used]
        places = np.arange(self._starts[-1]) + np.repeat(self._past - self._starts[:-1], self._new)
        page = self._tables[np.repeat(np.arange(len(rows)), self._new), places // PAGE]
        self._slots = self._tensor(page * PAGE + places % PAGE)
        for row, total, end in zip(self.rows, self._total, self._starts[1:], strict=True):
            if row.tree is not None and total == row.length:  # commands stand side by side, all after the prompt
                places[end - len(row.tree.ids) : end] = len(row.prompt) + row.tree.depths
        ids = [t for row, end in zip(self.rows, self._total, strict=True) for t in row.tokens(row.computed, int(end))]
        self.ids, self.positions = self._tensor(np.array(ids)), self._tensor(places)
        self.ends = self._tensor(self._starts[1:] - 1)
        self._single = int((self._new == 1).sum())  # rows with one new token, which come first
        self._single_mask: torch.Tensor | None = None
        self._pieces = [self._piece(*bounds) for bounds in self._bounds(workspace)]

    def _tensor(self, array: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(array).to(self._device)

    def _bounds(self, workspace: int) -> list[tuple[int, int]]:
        """Bounds of the pieces: rows of about the same work, as many as fit."""
        shape, new, total = self._pool.shape, self._new.tolist(), self._total.tolist()
        most = max(PAGE, workspace // (shape.position_bytes // shape.layers))  # positions in a piece
        bounds, first, longest, needed = list[tuple[int, int]](), 0, 0, 0
        for row, (count, length) in enumerate(zip(new, total, strict=True)):
            rows, longest, needed = row - first + 1, max(longest, length), needed + count * length
            entries = rows * count * longest
            fits = rows * longest <= most and (count == 1 or entries * self._groups <= _MASK_ENTRIES)
            if rows > 1 and not (fits and entries <= _PADDING * needed):
                bounds.append((first, row))
                first, longest, needed = row, length, count * length
        return [*bounds, (first, len(new))]

    def _piece(self, first: int, last: int) -> _Piece:
        new, past, total = (part[first:last] for part in (self._new, self._past, self._total))
        rows, longest, seen = last - first, int(new.max()), int(total.max())
        start, end = int(self._starts[first]), int(self._starts[last])
        table = self._tensor(self._tables[first:last, : -(-seen // PAGE)].reshape(-1))
        spread = gather = None
        if int(new.min()) < longest:
            steps = np.arange(longest)
            spread = self._tensor((self._starts[first:last, None] + np.minimum(steps, new[:, None] - 1)).reshape(-1))
            gather = self._tensor(np.flatnonzero(steps < new[:, None]))
        mask, read = None, self.rows[first:last]
        trees = [number for number, row in enumerate(read) if row.tree is not None and total[number] == row.length]
        if longest == 1 and int(total.min()) < seen:
            mask = self._mask_of_single()[first:last, :, :, :seen]
        elif longest > 1 and (past.any() or trees):
            queries = self._tensor(past[:, None] + np.minimum(np.arange(longest), new[:, None] - 1))
            mask = self._mask(queries, seen)
            for number in trees:
                self._hide_others(mask[number, 0], read[number], int(new[number]))
            mask = mask.repeat(1, 1, self._groups, 1)
        return _Piece(start, end, rows, longest, spread, gather, table, seen, mask)

    def _mask_of_single(self) -> torch.Tensor:
        """One mask for all rows with one new token: pieces take their part of it."""
        if self._single_mask is None:
            past = self._past[: self._single]
            self._single_mask = self._mask(self._tensor(past[:, None]), int(past.max()) + 1)
        return self._single_mask

    def _hide_others(self, mask: torch.Tensor, row: Row, new: int) -> None:
        """Hide from each token of a row's commands those that it does not go on from: in (new, seen)."""
        if row.tree is not None and row.tree.ids:
            count, start = len(row.tree.ids), len(row.prompt)
            part = mask[new - count : new, start : start + count]
            part.masked_fill_(self._tensor(row.tree.hidden), torch.finfo(self._dtype).min)

    def _mask(self, queries: torch.Tensor, seen: int) -> torch.Tensor:
        """(rows, 1, new, seen) for queries (rows, new) that see up to their own position."""
        hidden = torch.arange(seen, device=self._device) > queries[..., None]
        mask = torch.zeros(hidden.shape, dtype=self._dtype, device=self._device)
        return mask.masked_fill_(hidden, torch.finfo(self._dtype).min)[:, None]

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, layer_idx: int, *args: Any, **kwargs: Any
    ) -> tuple[Any, torch.Tensor]:
        """Keep what a layer has computed. What the model takes for keys is the layer itself, which attends."""
        keys, values = key_states[0].transpose(0, 1), value_states[0].transpose(0, 1)
        shape = self._pool.shape
        if keys.shape[1:] != shape[1:3] or values.shape[1:] != shape[1:3]:
            raise EngineError(
                f"the model keeps keys and values of shape {tuple(keys.shape[1:])} and {tuple(values.shape[1:])}, "
                f"where its configuration says {shape[1:3]}: this model is not supported"
            )
        self._pool.write(layer_idx, self._slots, keys, values)
        return PlannedLayer(self, layer_idx), value_states

    def attend(self, layer: int, query: torch.Tensor, scaling: float | None) -> torch.Tensor:
        """Attention output (T, heads, size) for queries (heads, T, size)."""
        heads, count, size = query.shape
        out = query.new_empty(count, heads, size)
        for piece in self._pieces:
            keys, values = self._pool.read(layer, piece.table, piece.rows, piece.seen)
            mine = query[:, piece.start : piece.end] if piece.spread is None else query[:, piece.spread]
            mine = mine.reshape(heads, piece.rows, piece.new, size).transpose(0, 1)
            if piece.mask is None and piece.new > 1:
                causal = {"is_causal": True, "enable_gqa": self._groups > 1, "scale": scaling}
                result = scaled_dot_product_attention(mine, keys, values, **causal)
            else:
                # The heads of a group stand in the place of more tokens, so that no key is copied for each of them.
                grouped = mine.reshape(piece.rows, heads // self._groups, self._groups * piece.new, size)
                result = scaled_dot_product_attention(grouped, keys, values, attn_mask=piece.mask, scale=scaling)
            result = result.reshape(piece.rows, heads, piece.new, size).transpose(1, 2).reshape(-1, heads, size)
            out[piece.start : piece.end] = result if piece.gather is None else result[piece.gather]
        return out

    def get_seq_length(self, layer_idx: int = 0) -> int:
        return 0


class PlannedLayer(NamedTuple):
    """One layer's keys and values of a pass, whose plan attends."""

    plan: Any
    number: int


def _attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: PlannedLayer,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    **others: Any,
) -> tuple[torch.Tensor, None]:
    """The attention function of a model during a pass, by the contract of transformers."""
    odd = [name for name in ("softcap", "s_aux", "position_bias", "sliding_window") if others.get(name) is not None]
    if odd:
        raise EngineError(f"the model's attention has {odd[0]}, which is not supported")
    return key.plan.attend(key.number, query[0], scaling)[None], None


AttentionInterface.register(NAME, _attention)
