"""Draws the replies of many rows together from a transformers model; each row's keys and values can be kept.

A row's token at position p is in slot p of the cache, so what a query may see is ``slot <= position``: padding is
never seen, and what is kept of a row has no holes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers import Cache, PreTrainedModel

from manyturn.agents.engine import EngineError
from manyturn.agents.torch_models import output_head

_FIRST_PIECE = 32  # prompt tokens read in one pass where rows differ much; doubles from piece to piece
_MASK_BUDGET = 2**25  # entries of the attention mask in one pass, which bounds the memory of reading long prompts


@dataclass(slots=True)
class Past:
    """What was computed for a sequence: its ids, and keys and values (layers, heads, length, head size)."""

    ids: list[int]
    keys: torch.Tensor
    values: torch.Tensor

    def shared(self, prompt: list[int]) -> int:
        """How many of the prompt's tokens are computed; the last one is always left, because its logits are needed."""
        same = len(self.ids)
        if prompt[:same] != self.ids:
            pairs = enumerate(zip(self.ids, prompt, strict=False))
            same = next((i for i, (a, b) in pairs if a != b), min(same, len(prompt)))
        return min(same, len(prompt) - 1)


@dataclass(slots=True)
class Row:
    """One reply to draw.

    Attributes:
        prompt: token ids, at least one.
        past: what is known of it from before.
        noise: one number in [0, 1) for each token that may be drawn; its length limits the reply.
        temperature: divides the logits; 0 takes the most likely token.
    """

    prompt: list[int]
    past: Past | None
    noise: Sequence[float]
    temperature: float


@dataclass(slots=True)
class Drawn:
    """One reply: T ids, their log-probabilities, the entropies drawn from, and what was computed for the row."""

    ids: list[int]
    logprobs: list[float]
    entropies: list[float]
    past: Past


class BatchDecoder:
    """Computes batches with one model.

    Args:
        model: any transformers causal language model with full attention and a plain output head.
        end_ids: tokens that end a reply.
    """

    def __init__(self, model: PreTrainedModel, end_ids: frozenset[int]):
        self.model = model
        self._ends = torch.tensor(sorted(end_ids), device=model.device)
        self._layers: int = model.config.get_text_config().num_hidden_layers

    def draw(self, rows: Sequence[Row]) -> list[Drawn]:
        """Replies to the rows, in their order. A row's reply does not depend on the others, save for rounding.

        Raises EngineError if the model computes NaN.
        """
        was_training = self.model.training
        if was_training:
            self.model.eval()
        try:
            # The model runs in float32 or its own type, under any autocast of the caller.
            with torch.inference_mode(), torch.autocast(self.model.device.type, enabled=False):
                return self._draw(rows)
        finally:
            if was_training:
                self.model.train()

    def _draw(self, rows: Sequence[Row]) -> list[Drawn]:
        known = [row.past.shared(row.prompt) if row.past else 0 for row in rows]
        # Rows with most to read first: those that still read are then the first n of the batch.
        order = sorted(range(len(rows)), key=lambda i: known[i] - len(rows[i].prompt))
        batch = [rows[i] for i in order]
        longest = max(len(row.prompt) + len(row.noise) for row in batch)
        cache = _Slots(self._layers, len(batch), longest, self.model.device)
        cache.recall([row.past for row in batch], [known[i] for i in order])
        logits = self._read([row.prompt for row in batch], [known[i] for i in order], cache)
        drawn = self._decode(batch, logits, cache)
        answers: list[Drawn | None] = [None] * len(rows)
        for place, i in enumerate(order):
            answers[i] = drawn[place]
        return [answer for answer in answers if answer is not None]

    def _read(self, prompts: list[list[int]], known: list[int], cache: "_Slots") -> torch.Tensor:
        """Compute what is new in the prompts; returns the logits (rows, V) after each row's last token."""
        device = self.model.device
        news = [prompt[k:] for prompt, k in zip(prompts, known, strict=True)]
        longest = len(news[0])
        padded = torch.tensor([new + [0] * (longest - len(new)) for new in news], device=device)
        lengths = torch.tensor([len(new) for new in news], device=device)
        first = torch.tensor(known, device=device)
        steps = torch.arange(longest, device=device)
        # Padding is at the row's last position, which every model has, and in a slot that is never seen.
        positions = first[:, None] + torch.minimum(steps[None], lengths[:, None] - 1)
        slots = torch.where(steps[None] < lengths[:, None], positions, cache.nowhere)
        last: torch.Tensor | None = None
        start, piece = 0, _FIRST_PIECE
        while start < longest:
            left = [len(new) - start for new in news if len(new) > start]
            n = len(left)
            # In one pass if that is mostly no padding, else in growing pieces, from which rows drop out.
            size = left[0] if n * left[0] <= 1.5 * sum(left) else min(left[0], piece)
            ends = start + min(size, max(1, _MASK_BUDGET // (n * cache.nowhere)))
            seen = max(k + min(len(new), ends) for k, new in zip(known[:n], news[:n], strict=True))
            hidden = self._hidden(padded[:n, start:ends], positions[:n, start:ends], slots[:n, start:ends], seen, cache)
            if last is None:
                last = hidden.new_zeros(len(news), hidden.shape[-1])
            stops = (lengths[:n] - 1 - start).clamp(max=ends - start - 1)
            last[:n] = hidden[torch.arange(n, device=device), stops]
            start, piece = ends, piece * 2
        assert last is not None
        return self._logits(last)

    def _hidden(
        self, ids: torch.Tensor, positions: torch.Tensor, slots: torch.Tensor, seen: int, cache: "_Slots"
    ) -> torch.Tensor:
        """Hidden states (n, T, D) of T new tokens of the first n rows, none of which sees beyond slot ``seen``."""
        sees = torch.arange(seen, device=ids.device) <= positions[..., None]
        low = torch.finfo(self.model.dtype).min
        mask = torch.zeros(sees.shape, dtype=self.model.dtype, device=ids.device).masked_fill_(~sees, low)
        cache.aim(slots, seen)
        body = self.model.get_decoder()
        return body(
            input_ids=ids, position_ids=positions, attention_mask=mask[:, None], past_key_values=cache, use_cache=True
        ).last_hidden_state

    def _logits(self, hidden: torch.Tensor) -> torch.Tensor:
        return output_head(self.model)(hidden).float()

    def _decode(self, batch: list[Row], logits: torch.Tensor, cache: "_Slots") -> list[Drawn]:
        """Draw until every row has ended; ended rows are computed along until they are half of all, then dropped."""
        device = self.model.device
        limits = torch.tensor([len(row.noise) for row in batch], device=device)
        most = max(len(row.noise) for row in batch)
        padded = [[*row.noise, *[0.0] * (most - len(row.noise))] for row in batch]
        noise = torch.tensor(padded, dtype=torch.float64, device=device)
        heat = torch.tensor([row.temperature for row in batch], device=device)
        positions = torch.tensor([len(row.prompt) for row in batch], device=device)
        longest = max(len(row.prompt) for row in batch)
        tokens_out = torch.zeros(len(batch), most, dtype=torch.long, device=device)
        scores_out = torch.zeros(len(batch), most, device=device)
        entropies_out = torch.zeros(len(batch), most, device=device)
        counts = torch.zeros(len(batch), dtype=torch.long, device=device)
        rows = torch.arange(len(batch), device=device)  # which of the batch each computed row is
        live = torch.ones(len(batch), dtype=torch.bool, device=device)
        sound = torch.ones((), dtype=torch.bool, device=device)
        pasts: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

        def keep(which: torch.Tensor) -> None:
            # A reply's last token has no keys yet: it is computed with the next prompt.
            chosen = rows[which]
            for place, row, count in zip(which.tolist(), chosen.tolist(), counts[chosen].tolist(), strict=True):
                pasts[row] = cache.copy(place, len(batch[row].prompt) + count - 1)

        for step in range(most):
            tokens, scores, entropies = sample(logits, noise[rows, step], heat[rows])
            sound = sound & logits.isfinite().all()
            tokens_out[rows, step], scores_out[rows, step], entropies_out[rows, step] = tokens, scores, entropies
            counts[rows] += live
            live = live & ~torch.isin(tokens, self._ends) & (step + 1 < limits[rows])
            left, fine = torch.stack([live.sum(), sound.long()]).tolist()  # the step's only wait for the device
            if not fine:
                raise EngineError(
                    "the model computed NaN or infinite logits: its weights are damaged (a learning rate too high?)"
                )
            if not left:
                break
            if left * 2 <= len(live):
                keep((~live).nonzero()[:, 0])
                cache.select(live.nonzero()[:, 0])
                rows, positions, tokens, live = rows[live], positions[live], tokens[live], live[live]
            hidden = self._hidden(tokens[:, None], positions[:, None], positions[:, None], longest + step + 1, cache)
            logits = self._logits(hidden[:, 0])
            positions = positions + live
        keep(torch.arange(len(rows), device=device))
        answers = zip(tokens_out.tolist(), scores_out.tolist(), entropies_out.tolist(), counts.tolist(), strict=True)
        return [
            Drawn(
                *(ids[:count], scores[:count], entropies[:count]),
                Past([*batch[row].prompt, *ids[: count - 1]], *pasts[row]),
            )
            for row, (ids, scores, entropies, count) in enumerate(answers)
        ]


class _Slots(Cache):
    """Keys and values of a batch, a slot for each position; made for the attention layers of transformers.

    Args:
        layers: how many layers write.
        rows: how many rows.
        length: slots of a row; one more, ``nowhere``, takes what padding writes.
    """

    def __init__(self, layers: int, rows: int, length: int, device: torch.device):
        super().__init__(layers=[])
        self._sizes, self.nowhere = (layers, rows, length + 1), length
        self._stores: list[torch.Tensor] = []  # keys and values, (layers, rows, heads, slots, head size)
        self._row = torch.arange(rows, device=device)[:, None]
        self._slots, self._seen = self._row, 0

    def recall(self, pasts: Sequence[Past | None], known: Sequence[int]) -> None:
        """Put what is known of each row into its first slots."""
        for row, (past, k) in enumerate(zip(pasts, known, strict=True)):
            if past is not None and k:
                self._allocate(past.keys, past.values)
                for store, old in zip(self._stores, (past.keys, past.values), strict=True):
                    store[:, row, :, :k] = old[:, :, :k]

    def aim(self, slots: torch.Tensor, seen: int) -> None:
        """The next forward pass writes into ``slots`` (n, T) of the first n rows, and sees the first ``seen`` slots."""
        self._slots, self._seen = slots, seen

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, layer_idx: int, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        self._allocate(key_states, value_states)
        n = len(self._slots)
        for store, new in zip(self._stores, (key_states, value_states), strict=True):
            store[layer_idx].transpose(1, 2)[self._row[:n], self._slots] = new.transpose(1, 2)
        keys, values = (store[layer_idx, :n, :, : self._seen] for store in self._stores)
        return keys, values

    def select(self, rows: torch.Tensor) -> None:
        """Go on with these rows alone."""
        self._stores = [store[:, rows] for store in self._stores]
        self._row = self._row[: len(rows)]

    def copy(self, row: int, length: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys and values of a row's first slots."""
        keys, values = (store[:, row, :, :length].clone() for store in self._stores)
        return keys, values

    def get_seq_length(self, layer_idx: int = 0) -> int:
        return self._seen

    def _allocate(self, *like: torch.Tensor) -> None:
        # Zeros, because an unseen slot's weight of 0 times a stray NaN would be NaN.
        if not self._stores:
            layers, rows, slots = self._sizes
            self._stores = [part.new_zeros(layers, rows, part.shape[1], slots, part.shape[-1]) for part in like]


def sample(
    logits: torch.Tensor, noise: torch.Tensor, heat: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Draw by inverting the cumulative distribution at ``noise``, summed in float64 so that rounding moves no boundary.

    Args:
        logits: (rows, V).
        noise: (rows,) uniform numbers in [0, 1).
        heat: (rows,) temperatures; 0 takes the largest logit.

    Returns:
        Tokens, their log-probabilities, and the entropies of what they were drawn from in nats, each (rows,).
    """
    greedy = heat == 0
    scores = torch.log_softmax(logits / torch.where(greedy, 1.0, heat)[:, None], -1)
    shares = scores.exp()
    cumulative = shares.cumsum(-1, dtype=torch.float64)
    drawn = torch.searchsorted(cumulative, (noise * cumulative[:, -1])[:, None], right=True)[:, 0]
    tokens = torch.where(greedy, logits.argmax(-1), drawn.clamp_(max=logits.shape[-1] - 1))
    return tokens, scores.gather(-1, tokens[:, None])[:, 0], torch.special.entr(shares).sum(-1)
