"""GMPO: the geometric mean of a reply's clipped ratios.

    d_t = lp_t - lp_old_t, clamped to [-low, high] on the side where A would profit
    l   = -A exp(mean over the sequence of d_t)          A: mean over the sequence

Source: arXiv 2507.20673. Numbers agree with ``compute_policy_loss_geo_mean`` of verl.

Implementation:
1. A sequence is a reply; with ``sequence = "branch"`` it is all that the policy said in a row.
2. Tokens are clipped one by one, on log-ratios, before the mean; a clipped token keeps its value and loses its
   gradient.
3. The advantage is averaged over the sequence, so that advantages of single tokens are refused.
4. Figures per token: clip_fraction, 1 where the log-ratio of a token with a positive advantage was out of bounds;
   low_clip_fraction, the same of a negative one; approx_kl as of ``clip``.

Differences: the paper's bounds are wide, (e^-0.4, e^0.4), and so are these. The paper's mean is over full responses;
an agent's are its replies. Left out: verl's geometric mean of importance weights; here a token's weight multiplies its
share of the sequence's loss, which is the same for weights of sequences.

Watch: ``clip_fraction`` and ``low_clip_fraction`` are small in so wide bounds; both well above 0 with a growing
``approx_kl``: steps are too large.
"""

from typing import Literal

from pydantic import Field

from manyturn.trainers.learn.objective.aggregate import Aggregation
from manyturn.trainers.learn.objective.objective import OBJECTIVES, ObjectiveConfig, TokenLoss, Tokens
from manyturn.trainers.learn.objective.reply_sums import reply_mean


class GmpoConfig(ObjectiveConfig):
    name: Literal["gmpo"] = "gmpo"
    aggregation: Aggregation = "seq-mean-token-mean"
    """How tokens are weighted against each other; the paper averages over sequences."""
    low: float = Field(default=0.4, gt=0)
    """How far the log-ratio may fall below 0."""
    high: float = Field(default=0.4, gt=0)
    """How far the log-ratio may rise above 0."""

    @property
    def averages_over_reply(self) -> bool:
        return True

    def uses_sequences(self) -> bool:
        return True


@OBJECTIVES.register(GmpoConfig)
def gmpo(tokens: Tokens, config: GmpoConfig) -> TokenLoss:
    """Loss of every token.

    >>> import torch
    >>> old, new, one = torch.zeros(1, 2), torch.tensor([[0.2, 2.0]]), torch.ones(1, 2)
    >>> gmpo(Tokens(new, old, one, one, reply=torch.tensor([[0, 0]])), GmpoConfig()).loss
    tensor([[-1.3499, -1.3499]])
    """
    free, sign = tokens.log_ratio, tokens.advantage.sign()
    bounded = free.clamp(-config.low, config.high)
    log_ratio = sign * (sign * free).minimum(sign * bounded)
    loss = -reply_mean(tokens.advantage, tokens.reply) * reply_mean(log_ratio, tokens.reply).clamp(-20, 20).exp()
    outside = (free != bounded).to(loss.dtype)
    figures = {
        "clip_fraction": outside * (sign > 0),
        "low_clip_fraction": outside * (sign < 0),
        "approx_kl": -free.detach(),
    }
    return TokenLoss(loss, figures)
