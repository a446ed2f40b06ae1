"""A pass in which every row draws one token, recorded once and replayed with other rows.

Unverified on a GPU. Python takes longer to launch the operations of such a pass than a GPU takes to compute them. All
that differs from pass to pass lies in one tensor of inputs: tokens, positions, places of keys and values, noise,
temperatures. Shapes are fixed: a pass has places for ``rows`` rows of up to ``pages`` pages, and those that are empty
write to a page of their own. So a CUDA graph of one pass is one of all, and a pass takes one copy there, one launch,
and one copy back.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import torch
from torch.nn.functional import scaled_dot_product_attention
from transformers import Cache, PreTrainedModel

from manyturn.agents.engine.decoding.memory import ran_out
from manyturn.agents.engine.decoding.page_pool import PAGE, PagePool
from manyturn.agents.engine.decoding.ragged_batch import PlannedLayer
from manyturn.agents.engine.decoding.row import Row
from manyturn.agents.engine.decoding.sampling import sample
from manyturn.agents.model.model_internals import output_head

_IDS, _POSITIONS, _SLOTS, _NOISE, _HEAT, _TABLE = range(6)  # columns of the inputs; the table is the rest
_RECORDED = 64  # passes, of different shapes, that are kept
_ENTROPY = 2  # row of what is drawn; no matter which token is drawn, it stays the same
_ROUNDING = {torch.float32: 1e-3, torch.float64: 1e-3}  # of entropies; of types of 16 bits more, and by other kernels
_COARSE = 0.05

Drawn = list[list[float]]  # tokens, log-probabilities, entropies, and whether logits were finite, of each row


class Recorder(Protocol):
    """Records the operations that some work launches.

    Attributes:
        pins: whether inputs come from memory that the device reads by itself.
    """

    pins: bool

    def record(self, work: Callable[[], torch.Tensor]) -> tuple[torch.Tensor, Callable[[], None]]:
        """The work's result, and a function that computes it again in place."""
        ...

    def forget(self) -> None:
        """All that was recorded is gone."""
        ...


class CudaRecorder:
    """Records CUDA graphs, which share their memory."""

    pins = True

    def __init__(self) -> None:
        self._memory: Any = None

    def record(self, work: Callable[[], torch.Tensor]) -> tuple[torch.Tensor, Callable[[], None]]:
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):  # libraries set up what they need at first use, which no graph may hold
            work()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        # Other threads, such as a learner's, may allocate meanwhile.
        with torch.cuda.graph(graph, pool=self._memory, capture_error_mode="thread_local"):
            result = work()
        self._memory = graph.pool()
        return result, graph.replay

    def forget(self) -> None:
        self._memory = None  # which went with the last graph


def recorder_for(device: torch.device) -> Recorder | None:
    """The recorder of a device; None where passes are launched operation by operation."""
    return CudaRecorder() if device.type == "cuda" else None


class PassPlaces(NamedTuple):
    """Places of a recorded pass: for rows, and for pages of each."""

    rows: int
    pages: int

    @classmethod
    def of(cls, rows: Sequence[Row]) -> "PassPlaces":
        """The smallest shape that holds some rows: a power of 2, and pages in steps of a quarter of one.

        >>> PassPlaces.of([Row([0] * 530, [0.5], 1.0)] * 5)
        PassPlaces(rows=8, pages=40)
        """
        longest = max(-(-row.length // PAGE) for row in rows)
        return cls(_rounded_up(len(rows), 1), _rounded_up(longest, 4))


def _rounded_up(number: int, steps: int) -> int:
    """The next of so many steps from a power of 2 to the next.

    >>> _rounded_up(5, 1), [_rounded_up(number, 4) for number in (3, 9, 11, 33)]
    (8, [3, 10, 12, 40])
    """
    step = max(1, (1 << (number - 1).bit_length()) // (2 * steps))
    return -(-number // step) * step


class RecordedPasses:
    """Recorded passes of one model.

    Args:
        workspace: bytes that the copy of one layer's keys and values may take.
    """

    def __init__(self, model: PreTrainedModel, pool: PagePool, workspace: int, recorder: Recorder | None):
        self._model, self._pool, self._workspace, self._recorder = model, pool, workspace, recorder
        self._passes = dict[PassPlaces, _RecordedPass]()

    @property
    def recording(self) -> bool:
        """True if passes can be recorded."""
        return self._recorder is not None

    def forget(self) -> None:
        """Drop all passes, as where weights, keys and values are no longer where they were."""
        self._passes.clear()
        if self._recorder is not None:
            self._recorder.forget()

    def draw(self, rows: Sequence[Row]) -> Drawn | None:
        """Draw the next token of each row, whose keys and values are all there but for the last token.

        Returns:
            None if this device cannot record the pass; nothing is recorded from then on. A pass's first replay is
            compared with its operations launched one by one; where they differ, these count, and nothing is recorded
            from then on.
        """
        if self._recorder is None:
            return None
        shape = PassPlaces.of(rows)
        recorded = self._passes.pop(shape, None)
        if recorded is None:
            if len(self._passes) >= _RECORDED:
                self._passes.pop(next(iter(self._passes)))  # the one that was used longest ago
            recorded = _RecordedPass(self._model, self._pool, shape, self._workspace)
            try:
                recorded.record(self._recorder)
            except RuntimeError as error:
                for each in (error, error.__context__):  # the end of a graph hides what ended it
                    if each is not None and ran_out(each):
                        raise each from None
                self._stop("none can be recorded: " + str(error).partition("\n")[0])
                return None
            drawn = recorded.draw(rows)
            rounding = _ROUNDING.get(self._model.dtype, _COARSE)
            if not _agree(drawn, launched := recorded.launched(len(rows)), rounding):
                self._stop("a replay draws from other distributions")
                return launched
        else:
            drawn = recorded.draw(rows)
        self._passes[shape] = recorded
        return drawn

    def _stop(self, reason: str) -> None:
        """Record nothing from now on."""
        warnings.warn(f"passes are launched operation by operation, since {reason}", stacklevel=3)
        self._recorder = None
        self._passes.clear()


def _agree(replayed: Drawn, launched: Drawn, rounding: float) -> bool:
    """True if a replay and the launched operations had the same distributions."""
    own, other = (torch.tensor(drawn[_ENTROPY]) for drawn in (replayed, launched))
    return torch.allclose(own, other, rounding, rounding, equal_nan=True)


class _RecordedPass(Cache):
    """A pass, which the model takes for its cache."""

    def __init__(self, model: PreTrainedModel, pool: PagePool, shape: PassPlaces, workspace: int):
        super().__init__(layers=[])
        self._model, self._pool, self._shape = model, pool, shape
        self._piece = max(1, workspace // (shape.pages * PAGE * (pool.shape.position_bytes // pool.shape.layers)))
        size = (shape.rows, _TABLE + shape.pages)
        self._host = torch.zeros(size, dtype=torch.float64)  # in which all of these numbers are exact
        self._inputs = torch.zeros(size, dtype=torch.float64, device=pool.device)

    def record(self, recorder: Recorder) -> None:
        """Record the pass, without any row."""
        if recorder.pins:
            self._host = self._host.pin_memory()
        self._put(())
        self._drawn, self._replay = recorder.record(self._compute)

    def draw(self, rows: Sequence[Row]) -> Drawn:
        """Replay it."""
        self._put(rows)
        self._replay()
        # The pass's only wait for the device.
        return [numbers[: len(rows)] for numbers in self._drawn.tolist()]

    def launched(self, rows: int) -> Drawn:
        """Launch the operations of the pass that was drawn last, whose first ``rows`` places are taken."""
        return [numbers[:rows] for numbers in self._compute().tolist()]

    def _put(self, rows: Sequence[Row]) -> None:
        host = self._host.numpy()
        host[:] = 0
        host[:, _SLOTS] = self._pool.spare * PAGE
        host[:, _TABLE] = self._pool.spare
        for place, row in zip(host, rows, strict=False):
            at = row.computed
            used = at // PAGE + 1
            place[:_TABLE] = (
                row.tokens(at, at + 1)[0],
                at,
                row.pages[at // PAGE] * PAGE + at % PAGE,
                row.noise[len(row.ids)],
                row.temperature,
            )
            place[_TABLE : _TABLE + used] = row.pages[:used]
        self._inputs.copy_(self._host, non_blocking=True)

    def _compute(self) -> torch.Tensor:
        """Tokens, log-probabilities, entropies and whether logits are finite: (4, rows), out of the inputs."""
        whole = self._inputs.long()
        positions = whole[:, _POSITIONS]
        self._slots, self._table = whole[:, _SLOTS], whole[:, _TABLE:]
        seen = self._shape.pages * PAGE
        hidden = torch.arange(seen, device=self._pool.device) > positions[:, None]
        dtype = self._model.dtype
        mask = torch.zeros(hidden.shape, dtype=dtype, device=self._pool.device)
        self._mask = mask.masked_fill_(hidden, torch.finfo(dtype).min)[:, None, None]
        body = self._model.get_decoder()
        states = body(
            input_ids=whole[None, :, _IDS], position_ids=positions[None], past_key_values=self, use_cache=True
        ).last_hidden_state[0]
        logits = output_head(self._model)(states).float()
        drawn = sample(logits, self._inputs[:, _NOISE], self._inputs[:, _HEAT].float())
        return torch.stack([each.double() for each in (*drawn, logits.isfinite().all(-1))])

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, layer_idx: int, *args: Any, **kwargs: Any
    ) -> tuple[Any, torch.Tensor]:
        """Keep what a layer has computed, as ``PassPlan.update`` does."""
        keys, values = key_states[0].transpose(0, 1), value_states[0].transpose(0, 1)
        self._pool.write(layer_idx, self._slots, keys, values)
        return PlannedLayer(self, layer_idx), value_states

    def attend(self, layer: int, query: torch.Tensor, scaling: float | None) -> torch.Tensor:
        """Attention output (rows, heads, size) for queries (heads, rows, size)."""
        heads, rows, size = query.shape
        outputs = list[torch.Tensor]()
        for piece in self._pieces(rows):
            table = self._table[piece]
            keys, values = self._pool.read(layer, table.reshape(-1), len(table), self._shape.pages * PAGE)
            # The heads of a group stand in the place of more tokens, so that no key is copied for each of them.
            grouped = query[:, piece].transpose(0, 1).reshape(len(table), self._pool.shape.heads, -1, size)
            result = scaled_dot_product_attention(grouped, keys, values, attn_mask=self._mask[piece], scale=scaling)
            outputs.append(result.reshape(len(table), heads, size))
        return torch.cat(outputs)

    def _pieces(self, rows: int) -> Iterator[slice]:
        return (slice(first, first + self._piece) for first in range(0, rows, self._piece))

    def get_seq_length(self, layer_idx: int = 0) -> int:
        return 0
