"""A recorded pass that holds something of the rows that it was recorded with, or that launches much outside of it."""

import warnings
from typing import Any

import pytest
import torch
from drawn_rows import Drawing, assert_right, make_model, row
from simulated_graph import SimulatedRecorder
from transformers import PreTrainedModel

from manyturn.agents.engine.decoding import decoder as decoding
from manyturn.agents.engine.decoding.recorded_pass import CudaRecorder
from manyturn.agents.engine.decoding.row import Row
from manyturn.trainers.learn.learner.operation_count import OperationCounter

pytestmark = pytest.mark.versions


class Recording(Drawing):
    def __init__(self, model: PreTrainedModel):
        self.recorder = SimulatedRecorder()
        super().__init__(model, recorder=self.recorder)


@pytest.mark.parametrize("kind", ["llama", "qwen3", "gpt2"])
def test_rows_draw_what_each_would_draw_alone_out_of_a_few_recorded_passes(kind, monkeypatch):
    monkeypatch.setattr(decoding, "_CPU_WORKSPACE", 2**14)  # rows attend in several pieces
    drawing = Recording(make_model(kind))
    rows = {n: row(n, length=1 + 17 * n % 150, limit=2 + n % 30, heat=(1.0, 0.5, 0.0)[n % 3]) for n in range(13)}
    drawing.draw(rows)
    assert drawing.recorder.replays > 10 and drawing.recorder.replays > 1.5 * drawing.recorder.records
    for one in rows.values():
        assert_right(drawing.decoder.model, one)


def test_prompts_wait_for_a_few_passes_and_are_read(monkeypatch):
    drawing = Recording(make_model("llama"))
    first, late = row(0, 20, 40), row(1, 30, 6)
    drawing.pool.hold(torch.float32)
    drawing.caches.begin(0, first, {}, alone=True)
    drawing.decoder.advance([first])
    drawing.caches.begin(1, late, {}, alone=False)
    passes = 0
    while not late.ids:
        drawing.decoder.advance([first, late])
        passes += 1
    assert passes == decoding.READ_EVERY and drawing.recorder.replays == passes - 1


def drawing_rows(drawing: Drawing, count: int) -> list[Row]:
    """Rows whose prompts are read."""
    rows = [row(n, 9 + 5 * n, 60) for n in range(count)]
    for n, one in enumerate(rows):
        assert drawing.caches.begin(n, one, {}, alone=not n) == "begun"
    drawing.decoder.advance(rows)
    return rows


class Outside(OperationCounter):
    """Counts what a replay does not."""

    def __init__(self, recorder: SimulatedRecorder):
        super().__init__()
        self._recorder = recorder

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if self._recorder.replaying:
            return func(*args, **(kwargs or {}))
        return super().__torch_dispatch__(func, types, args, kwargs)


def test_a_pass_launches_at_most_ten_operations_outside_of_the_graph():
    launched, recorded = Drawing(make_model("llama")), Recording(make_model("llama"))
    counts = list[int]()
    for drawing in (launched, recorded):
        rows = drawing_rows(drawing, 3)
        drawing.decoder.advance(rows)
        with Outside(recorded.recorder) as counter:
            drawing.decoder.advance(rows)
        counts.append(len(counter.operations))
    assert counts[0] > 80 and 0 < counts[1] <= 10, counts


def test_new_keys_and_values_elsewhere_are_used_once_the_passes_are_forgotten():
    drawing = Recording(make_model("llama"))
    drawing_rows(drawing, 3)
    drawing.pool.let_go()
    drawing.decoder.forget_recorded()
    again = {n: row(10 + n, 12, 9) for n in range(3)}
    drawing.caches.clear()
    drawing.draw(again)
    for one in again.values():
        assert_right(drawing.decoder.model, one)


def test_a_device_that_cannot_record_draws_operation_by_operation_and_says_so():
    drawing = Drawing(make_model("llama"), recorder=CudaRecorder())
    one = row(0, 12, 9)
    with pytest.warns(UserWarning, match="none can be recorded"):
        drawing.draw({0: one})
    assert_right(drawing.decoder.model, one)
    with warnings.catch_warnings(action="error"):
        drawing.draw({0: row(1, 12, 9)})


class StaleRecorder(SimulatedRecorder):
    """Replays give what was computed while they were recorded, as a graph on other memory does."""

    def record(self, work):
        kept = work().clone()
        result, _ = super().record(work)
        return result, lambda: result.copy_(kept)


def test_a_graph_whose_replay_differs_from_its_operations_is_left_after_one_pass():
    drawing = Drawing(make_model("llama"), recorder=StaleRecorder())
    one = row(0, 12, 9)
    with pytest.warns(UserWarning, match="a replay draws from other distributions"):
        drawing.draw({0: one})
    assert_right(drawing.decoder.model, one)
