"""Sums over the replies of a row: what methods need whose unit is a reply and not a token.

A row of a batch holds one reply or several. ``reply_BL`` says which reply a token belongs to: its number inside the
row, any integers from 0, and -1 at positions that the policy did not write.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


def reply_sum(x_BL: "Tensor", reply_BL: "Tensor") -> "Tensor":
    """At every token the sum of x over the token's reply (B, L).

    >>> import torch
    >>> reply_sum(torch.tensor([[1.0, 2.0, 9.0, 4.0]]), torch.tensor([[0, 0, -1, 3]])).tolist()
    [[3.0, 3.0, 9.0, 4.0]]
    """
    place_BL = reply_BL + 1
    sums = x_BL.new_zeros(len(x_BL), int(place_BL.max()) + 1).scatter_add(1, place_BL, x_BL)
    return sums.gather(1, place_BL)


def reply_length(reply_BL: "Tensor", like: "Tensor") -> "Tensor":
    """At every token the number of tokens of its reply (B, L), in the type of ``like``."""
    return reply_sum(like.new_ones(reply_BL.shape), reply_BL)


def reply_mean(x_BL: "Tensor", reply_BL: "Tensor") -> "Tensor":
    """At every token the mean of x over the token's reply (B, L).

    >>> import torch
    >>> reply_mean(torch.tensor([[1.0, 2.0, 4.0]]), torch.tensor([[0, 0, 1]])).tolist()
    [[1.5, 1.5, 4.0]]
    """
    return reply_sum(x_BL, reply_BL) / reply_length(reply_BL, x_BL)
