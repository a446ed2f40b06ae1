"""Log-probability and entropy of tokens without the logits of all of them at once, forwards or backwards.

With logits l, log-probabilities q = l - log sum exp(l) and the entropy H = -sum(exp(q) q), the gradients are

    d q(y) / d l = [v = y] - exp(q)          d H / d l = -exp(q) (q + H)

so a block of logits, of some tokens and some of the vocabulary, can be computed again and forgotten. Sums are in
float32 or better, whatever the products are computed in.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch.nn.functional import linear

from manyturn.agents.model.float32_head import Float32Head

AT_ONCE = 2**22  # logits of a block
# On a GPU, where a block costs launches, and a piece of the head's weights is brought into their type for each.
GPU_AT_ONCE = 2**25
_WORDS = 2**13  # of the vocabulary in a block, at most


class _Block(NamedTuple):
    tokens: slice
    words: slice


def _blocks(tokens: int, words: int, at_once: int) -> Iterator[_Block]:
    """All blocks of so many logits at most; those of the same tokens follow each other."""
    wide = min(words, _WORDS, at_once)
    high = max(1, at_once // wide)
    for top in range(0, tokens, high):
        for first_word in range(0, words, wide):
            yield _Block(slice(top, min(top + high, tokens)), slice(first_word, min(first_word + wide, words)))


class _Head(NamedTuple):
    """From hidden states to logits; ``computed`` is the type of products, ``at_once`` the logits of a block."""

    weight: torch.Tensor
    bias: torch.Tensor | None
    temperature: float
    computed: torch.dtype
    at_once: int

    @property
    def summed(self) -> torch.dtype:
        """The type of sums."""
        return torch.promote_types(self.computed, torch.float32)

    def logits(self, states: torch.Tensor, block: _Block) -> torch.Tensor:
        """(tokens, words) of a block, divided by the temperature."""
        bias = None if self.bias is None else self.bias[block.words].to(self.computed)
        logits = linear(states[block.tokens].to(self.computed), self.weight[block.words].to(self.computed), bias)
        return logits.to(self.summed).div_(self.temperature)


def _own(targets: torch.Tensor, block: _Block) -> tuple[torch.Tensor, torch.Tensor]:
    """Of each token of a block the column (tokens, 1) of its own word, and whether the block has it (tokens,)."""
    columns, width = targets[block.tokens] - block.words.start, block.words.stop - block.words.start
    return columns.clamp(0, width - 1)[:, None], (columns >= 0) & (columns < width)


class _Scores(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        states: torch.Tensor,
        targets: torch.Tensor,
        weight: torch.Tensor,
        bias: torch.Tensor | None,
        settings: tuple[float, torch.dtype, int],
    ) -> Any:
        head = _Head(weight, bias, *settings)
        largest = states.new_full((len(states),), float("-inf"), dtype=head.summed)
        total, weighted, own = (torch.zeros_like(largest) for _ in range(3))
        for block in _blocks(len(states), len(weight), head.at_once):
            at, logits = block.tokens, head.logits(states, block)
            column, is_here = _own(targets, block)
            own[at] = torch.where(is_here, logits.gather(1, column)[:, 0], own[at])
            top = torch.maximum(largest[at], logits.amax(-1))
            logits.sub_(top[:, None])
            shares = logits.exp()
            # Of what was summed below an earlier maximum; at first there is none, and nothing was summed.
            drop = torch.where(total[at] > 0, largest[at] - top, 0.0)
            weighted[at] = (weighted[at] + total[at] * drop) * drop.exp() + shares.mul(logits).sum(-1)
            total[at] = total[at] * drop.exp() + shares.sum(-1)
            largest[at] = top
        # The largest logit is kept apart from the logarithm of the sum: their sum has fewer digits after the point.
        spread = total.log()
        entropy = spread - weighted / total
        ctx.settings = settings
        ctx.save_for_backward(states, targets, weight, bias, largest, spread, entropy)
        ctx.set_materialize_grads(False)
        return own - largest - spread, entropy

    @staticmethod
    def backward(ctx: Any, *by: torch.Tensor | None) -> Any:
        by_logprob, by_entropy = by
        states, targets, weight, bias, largest, spread, entropy = ctx.saved_tensors
        head = _Head(weight, bias, *ctx.settings)
        by_logprob = torch.zeros_like(spread) if by_logprob is None else by_logprob
        by_states, by_weight, by_bias = (
            None if of is None or not needs_gradient else torch.zeros_like(of, dtype=head.summed)
            for of, needs_gradient in zip(
                (states, weight, bias), (ctx.needs_input_grad[i] for i in (0, 2, 3)), strict=True
            )
        )
        for block in _blocks(len(states), len(weight), head.at_once):
            at, words = block
            logs = head.logits(states, block).sub_(largest[at, None]).sub_(spread[at, None])
            slope = logs.exp()
            if by_entropy is None:
                slope.mul_(-by_logprob[at, None])
            else:
                slope.mul_(logs.add_(entropy[at, None]).mul_(-by_entropy[at, None]).sub_(by_logprob[at, None]))
            column, is_here = _own(targets, block)
            slope.scatter_add_(1, column, (by_logprob[at] * is_here)[:, None])
            slope.div_(head.temperature)
            if by_bias is not None:
                by_bias[words] += slope.sum(0)
            slope = slope.to(head.computed)
            if by_states is not None:
                by_states[at] += slope @ weight[words].to(head.computed)
            if by_weight is not None:
                by_weight[words] += slope.T @ states[at].to(head.computed)
        slopes = ((by_states, states), (by_weight, weight), (by_bias, bias))
        at_states, at_weight, at_bias = (None if slope is None else slope.to(of.dtype) for slope, of in slopes)
        return at_states, None, at_weight, at_bias, None


def blockwise_scores(
    head: torch.nn.Linear, states: torch.Tensor, targets: torch.Tensor, temperature: float, place: str | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """The result of ``free_scores`` for the same arguments, computed in blocks."""
    kind = states.device.type
    at_once = GPU_AT_ONCE if (place or kind) == "cuda" else AT_ONCE
    computed = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else head.weight.dtype
    if isinstance(head, Float32Head):
        computed = torch.promote_types(head.weight.dtype, torch.float32)
    with torch.autocast(kind, enabled=False):
        return _Scores.apply(states, targets, head.weight, head.bias, (temperature, computed, at_once))
