"""Computes replies pass by pass: every pass takes each row one token further, or reads a part of its prompt."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from transformers import PreTrainedModel

from manyturn.agents.engine.decoding.command_choice import choose
from manyturn.agents.engine.decoding.page_pool import PagePool
from manyturn.agents.engine.decoding.ragged_batch import NAME, PassPlan
from manyturn.agents.engine.decoding.recorded_pass import Drawn, RecordedPasses, Recorder
from manyturn.agents.engine.decoding.row import Row
from manyturn.agents.engine.decoding.sampling import sample
from manyturn.agents.engine.engine import EngineError
from manyturn.agents.model.model_internals import allowed_logits, output_head

_PASS_TOKENS = 4096  # new tokens of a pass, at most, unless more rows than that are drawing
_CPU_PASS_BYTES, _FEW_TOKENS = 2**24, 512  # for what a pass computes on a CPU, unless that makes it very short
_MASK_ENTRIES = 2**24  # of a row that goes on reading, which bounds the memory that a long prompt takes
_LEAST_TOKENS = 32
READ_EVERY = (
    8  # passes; prompts wait so long where passes that only draw are recorded, which takes a fraction of the time
)
# Where each layer looks up its attention function; the library's own way to set it goes through all modules.
_ATTENTION = "_attn_implementation"
_CPU_WORKSPACE, _GPU_WORKSPACE = 2**20, 2**28  # bytes; on a CPU a piece stays in its cache


class Decoder:
    """Computes with one model.

    Args:
        model: any transformers causal language model with full attention and a plain output head.
        end_ids: tokens that end a reply.
        pool: where keys and values are.
        recorder: of passes in which rows only draw; None: none is recorded.

    Attributes:
        read_seconds, draw_seconds: of all passes; one that reads prompts and draws is shared out by tokens.
    """

    def __init__(
        self, model: PreTrainedModel, end_ids: frozenset[int], pool: PagePool, recorder: Recorder | None = None
    ):
        self.model, self._ends, self._pool = model, end_ids, pool
        config = model.config.get_text_config()
        self._groups: int = config.num_attention_heads // pool.shape.heads
        on_cpu = model.device.type == "cpu"
        self._workspace = _CPU_WORKSPACE if on_cpu else _GPU_WORKSPACE
        # A layer holds about eight vectors of the hidden size for a token, and three of the size between.
        between = getattr(config, "intermediate_size", None) or 4 * config.hidden_size
        token_bytes = (8 * config.hidden_size + 3 * between) * model.dtype.itemsize
        fit = _CPU_PASS_BYTES // token_bytes if on_cpu else _PASS_TOKENS
        self.pass_tokens = min(_PASS_TOKENS, max(_FEW_TOKENS, fit))
        self._recorded = RecordedPasses(model, pool, self._workspace, recorder)
        self._unread = 0  # passes that prompts have waited for
        self.read_seconds = self.draw_seconds = 0.0

    def advance(self, rows: Sequence[Row]) -> list[Row]:
        """Make one pass. A row's reply does not depend on the others, save for rounding.

        Returns:
            The rows that ended.

        Raises:
            EngineError: the model computes NaN.
        """
        began = time.perf_counter()
        self._pool.hold(self.model.dtype)
        with _drawing(self.model):
            ended, reading = self._replayed(rows) or self._launched(rows)
        seconds = time.perf_counter() - began
        self.read_seconds += reading * seconds
        self.draw_seconds += (1 - reading) * seconds
        return ended

    def forget_recorded(self) -> None:
        """Record passes again: weights, keys or values are no longer where they were."""
        self._recorded.forget()

    def _launched(self, rows: Sequence[Row]) -> tuple[list[Row], float]:
        """A pass operation by operation: the rows that ended, and the share of its tokens that were read."""
        self._unread = 0
        plan = self._plan(rows)
        body = self.model.get_decoder()
        hidden = body(
            input_ids=plan.ids[None], position_ids=plan.positions[None], past_key_values=plan, use_cache=True
        ).last_hidden_state[0]
        for row, count in zip(plan.rows, plan.counts, strict=True):
            row.computed += count
        read = [place for place, row in enumerate(plan.rows) if row.computed == row.length]
        ready = [place for place in read if plan.rows[place].tree is None]
        ended = self._draw([plan.rows[place] for place in ready], hidden[plan.ends[ready]]) if ready else []
        ended += self._choose(plan, [place for place in read if plan.rows[place].tree is not None], hidden)
        return ended, sum(count for count in plan.counts if count > 1) / sum(plan.counts)

    def _replayed(self, rows: Sequence[Row]) -> tuple[list[Row], float] | None:
        """The same for the rows that only draw, out of a recorded pass; None if there is none.

        Rows that read have to wait, but for no more than some passes.
        """
        drawing = [row for row in rows if row.length - row.computed == 1]
        if not self._recorded.recording or not drawing or any(row.choices is not None for row in drawing):
            return None
        self._unread += len(drawing) < len(rows)
        if self._unread >= READ_EVERY or (drawn := self._recorded.draw(drawing)) is None:
            return None
        for row in drawing:
            row.computed += 1
        return self._say(drawing, drawn), 0.0

    def read_less(self) -> bool:
        """Read prompts in pieces half as long from now on; False if they are short already."""
        self.pass_tokens //= 2
        return self.pass_tokens >= _LEAST_TOKENS

    def _plan(self, rows: Sequence[Row]) -> PassPlan:
        """Rows that draw take one token each; those that read share what is left, the first ones first."""
        budget = max(self.pass_tokens - sum(row.length - row.computed == 1 for row in rows), 1)
        taking, counts = list[Row](), list[int]()
        for row in rows:
            count = row.length - row.computed
            if row.tree is not None:
                count = self._piece_with_tree(row, len(row.tree.ids) + 1, budget, is_first=not taking)
                budget -= count
            elif count > 1:
                piece = _MASK_ENTRIES // (row.length * self._groups) if row.computed else count
                count = min(count, max(piece, 16), budget)
                budget -= count
            if count:
                taking.append(row)
                counts.append(count)
        return PassPlan(self._pool, taking, counts, self._groups, self._workspace, self.model.dtype)

    def _piece_with_tree(self, row: Row, last: int, budget: int, *, is_first: bool) -> int:
        """Tokens that a row reads now: its commands, and the prompt's last token, are never read in pieces."""
        count = row.length - row.computed
        if count <= budget or (is_first and count == last):
            return count
        piece = max(_MASK_ENTRIES // (row.length * self._groups), 16) if row.computed else count
        return max(0, min(count - last, piece, budget))

    def _choose(self, plan: PassPlan, places: list[int], hidden: torch.Tensor) -> list[Row]:
        """Have rows say whole commands; all of them have ended then."""
        rows = [(row, row.tree) for row in (plan.rows[place] for place in places) if row.tree is not None]
        if rows:
            head = output_head(self.model)
            ends = np.cumsum(plan.counts)[places]
            parts = [hidden[end - len(tree.ids) - 1 : end] for end, (_, tree) in zip(ends, rows, strict=True)]
            choose(head, self.model.config.get_text_config().vocab_size, rows, torch.cat(parts))
        return [row for row, _ in rows]

    def _draw(self, rows: list[Row], hidden: torch.Tensor) -> list[Row]:
        """Draw the next token of each row from its hidden state (rows, D); returns the rows that ended."""
        choosing = [place for place, row in enumerate(rows) if row.allowed is not None]
        if 0 < len(choosing) < len(rows):
            others = [place for place, row in enumerate(rows) if row.allowed is None]
            parts = ((choosing, hidden[choosing]), (others, hidden[others]))
            return [row for places, part in parts for row in self._draw([rows[place] for place in places], part)]
        head = output_head(self.model)
        if choosing:
            words, logits, possible = allowed_logits(head, hidden, [row.allowed or () for row in rows])
        else:
            words, logits, possible = None, head(hidden).float(), None
        noise = torch.tensor([row.noise[len(row.ids)] for row in rows], dtype=torch.float64, device=logits.device)
        heat = torch.tensor([row.temperature for row in rows], device=logits.device)
        tokens, scores, entropies = sample(logits, noise, heat)
        sound = (logits.isfinite() if possible is None else logits.isfinite() | ~possible).all(-1)
        tokens = tokens if words is None else words[tokens]
        # The pass's only wait for the device.
        drawn = torch.stack([tokens.double(), scores.double(), entropies.double(), sound.double()]).tolist()
        return self._say(rows, drawn)

    def _say(self, rows: Sequence[Row], drawn: Drawn) -> list[Row]:
        """Add what was drawn; returns the rows that ended."""
        if not all(drawn[3]):
            raise EngineError(
                "the model computed NaN or infinite logits: its weights are damaged (a learning rate too high?)"
            )
        for row, token, score, entropy in zip(rows, *drawn[:3], strict=True):
            row.say(int(token), score, entropy)
        return [row for row in rows if row.ids[-1] in self._ends or row.is_full]


@contextmanager
def _drawing(model: PreTrainedModel) -> Iterator[None]:
    """A model as it is while it draws; a learner that shares it finds it as it was."""
    config = model.config.get_text_config()
    attention = getattr(config, _ATTENTION)
    # eval() and train() take nine times as long, by Module.__setattr__, which shows in the passes of small models.
    training = [module for module in model.modules() if module.training]
    for module in training:
        vars(module)["training"] = False
    setattr(config, _ATTENTION, NAME)
    try:
        # The model runs in float32 or its own type, under any autocast of the caller.
        with torch.inference_mode(), torch.autocast(model.device.type, enabled=False):
            yield
    finally:
        setattr(config, _ATTENTION, attention)
        for module in training:
            vars(module)["training"] = True
