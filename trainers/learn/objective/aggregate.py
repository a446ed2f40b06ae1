"""From a loss per token to a number, in the same way however the batch is split.

    token-mean              sum of x over tokens / T                                     (DAPO)
    token-sum               sum of x over tokens
    seq-mean-token-sum      sum of x over tokens / S
    seq-mean-token-mean     sum over sequences of the sequence's mean / S                (GRPO)
    seq-mean-token-sum-norm sum of x over tokens / (S scale)                             (Dr.GRPO)

T tokens of the policy and S sequences with at least one, counted over the full batch that makes one update. Each mode
is a sum of terms over fixed numbers, therefore the parts of a batch add up to the batch, and so do their gradients.

What a sequence is, the objective's option ``sequence`` says. A reply, which is one call of the model, by default: that
is the row of verl-agent's batches, the response of the papers, and it makes the loss independent of whether an
episode's replies are in one row or in many. A branch, which is the full row, is what LOOP and single-row trainers
average over.

Source: ``agg_loss`` of verl, with which numbers agree. Left out: its default scale, the width of the padded tensor,
with which the loss depends on the longest reply; and verl-agent's variants of the modes. These differ at rows without
tokens, which are NaN or count as rows there, and in seq-mean-token-sum-norm, which is not divided by S there.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from manyturn.trainers.learn.objective.reply_sums import reply_length

if TYPE_CHECKING:
    from torch import Tensor

Aggregation = Literal["token-mean", "token-sum", "seq-mean-token-sum", "seq-mean-token-mean", "seq-mean-token-sum-norm"]


@dataclass(frozen=True)
class Denominators:
    """Divisors of sums: counts over the full batch of one update.

    Attributes:
        tokens: tokens of the policy.
        sequences: sequences with at least one of them.
        episodes: episodes; only a mean over episodes asks for them.
    """

    tokens: int
    sequences: int
    episodes: int = 1

    @classmethod
    def of(cls, *sequences: "Tensor", episodes: int | None = None) -> "Denominators":
        """Counts over all parts of a batch, which may differ in shape.

        >>> import torch
        >>> Denominators.of(torch.tensor([[0, 0, 1], [-1, -1, -1]]), torch.tensor([[-1, 0]]))
        Denominators(tokens=4, sequences=3, episodes=2)

        Args:
            sequences: (B, L) numbers of the sequence that a token belongs to inside its row, -1 elsewhere.
            episodes: number of episodes; by default each row with a token is one.
        """
        rows = [row_L[row_L >= 0] for part_BL in sequences for row_L in part_BL]
        tokens = sum(len(row) for row in rows)
        if not tokens:
            raise ValueError("no position has mask 1: a batch without tokens of the policy has no loss")
        return cls(
            tokens,
            sum(len(row.unique()) for row in rows),
            sum(len(row) > 0 for row in rows) if episodes is None else episodes,
        )


def aggregate(
    x_BL: "Tensor", sequence_BL: "Tensor", mode: Aggregation, denominators: Denominators, scale: float | None = None
) -> "Tensor":
    """The share of these rows in the batch's aggregate.

    >>> import torch
    >>> x, rows = torch.tensor([[1.0, 3.0], [8.0, 9.0]]), torch.tensor([[0, 0], [0, -1]])
    >>> {mode: aggregate(x, rows, mode, Denominators.of(rows)).item() for mode in ["token-mean", "seq-mean-token-mean"]}
    {'token-mean': 4.0, 'seq-mean-token-mean': 5.0}

    Args:
        x_BL: value per token; positions outside sequences may hold anything, NaN included.
        sequence_BL: number of the token's sequence inside its row, -1 where the policy wrote nothing.
        mode: see above.
        denominators: counts over the full batch, not over these rows.
        scale: constant of seq-mean-token-sum-norm, such as the longest reply allowed; for no other mode.
    """
    constant = check_scale(mode, scale)
    x_BL = x_BL.masked_fill(sequence_BL < 0, 0)
    if mode == "seq-mean-token-mean":
        x_BL = x_BL / reply_length(sequence_BL, x_BL)
    total = x_BL.sum(dim=-1).sum()
    match mode:
        case "token-mean":
            return total / denominators.tokens
        case "token-sum":
            return total
        case _:
            return total / (denominators.sequences * constant)


def check_scale(mode: Aggregation, scale: float | None) -> float:
    """The scale, 1 where the mode has none. Refuses a mode without the scale it needs, and a scale without effect."""
    if mode != "seq-mean-token-sum-norm":
        if scale is not None:
            raise ValueError(f"scale has no effect with {mode}")
        return 1.0
    if scale is None:
        raise ValueError("seq-mean-token-sum-norm divides by scale: give a constant, such as the longest reply allowed")
    return scale
