"""GSPO: one ratio for a full reply, the geometric mean of its tokens' ratios.

    s   = exp(mean over the sequence of lp - lp_old)
    s_t = s, with the gradient of the token's own lp;  log s_t at most 10
    l   = max(-A s_t, -A clamp(s_t, 1 - low, 1 + high))

Source: arXiv 2507.18071, in its token-level form. Numbers agree with ``compute_policy_loss_gspo`` of verl and, where a
sequence has one advantage, with TRL's sequence level.

Implementation:
1. A sequence is a reply, one call of the model; with ``sequence = "branch"`` it is all that the policy said in a row.
2. All tokens of a sequence are clipped together, or none is.
3. The mean is over tokens of a sequence, then over sequences.
4. Figures per token: clip_fraction and approx_kl as of ``clip``.

Differences: bounds of a few 1e-4 are the authors', for replies of thousands of tokens; the mean log-ratio of a short
reply moves as far as that of a token, hence the recipe's 0.2. In its token-level form, as here, tokens of a sequence
may have advantages of their own. No dual clip, which the paper does not have; verl has none here either.

Watch: ``clip_fraction`` is of full replies: theirs clip about 15 %; near 1 with the authors' bounds on short replies
nothing is learnt. ``approx_kl`` above 0.05: steps are too large.
"""

from typing import Literal

from pydantic import Field

from manyturn.trainers.learn.objective.aggregate import Aggregation
from manyturn.trainers.learn.objective.objective import OBJECTIVES, ObjectiveConfig, TokenLoss, Tokens
from manyturn.trainers.learn.objective.reply_sums import reply_mean


class GspoConfig(ObjectiveConfig):
    name: Literal["gspo"] = "gspo"
    aggregation: Aggregation = "seq-mean-token-mean"
    """How tokens are weighted against each other; the paper averages over sequences."""
    low: float = Field(default=3e-4, gt=0, le=1)
    """How far the sequence's ratio may fall below 1."""
    high: float = Field(default=4e-4, gt=0)
    """How far the sequence's ratio may rise above 1."""

    def uses_sequences(self) -> bool:
        return True


@OBJECTIVES.register(GspoConfig)
def gspo(tokens: Tokens, config: GspoConfig) -> TokenLoss:
    """Loss of every token.

    >>> import torch
    >>> old, new, one = torch.zeros(1, 3), torch.tensor([[0.1, 0.3, 0.0]]), torch.ones(1, 3)
    >>> gspo(Tokens(new, old, one, one, reply=torch.tensor([[0, 0, 1]])), GspoConfig(high=0.5)).loss
    tensor([[-1.2214, -1.2214, -1.0000]])
    """
    sequence = reply_mean(tokens.log_ratio.detach(), tokens.reply)
    ratio = (tokens.logp - tokens.logp.detach() + sequence).clamp(max=10).exp()
    free = -tokens.advantage * ratio
    bounded = -tokens.advantage * ratio.clamp(1 - config.low, 1 + config.high)
    figures = {"clip_fraction": (bounded > free).to(free.dtype), "approx_kl": -tokens.log_ratio.detach()}
    return TokenLoss(free.maximum(bounded), figures)
