"""TOPR: REINFORCE that believes good samples fully and bad ones no more than they are still likely.

    l = -w A lp      w = 1 where A > 0;  sg(clamp(r, 0, 1)) elsewhere        r = exp(lp - lp_old), of the sequence

Source: tapered off-policy REINFORCE, arXiv 2503.14286, whose ratio is of the full sequence (a product, ``ratio =
"sequence"``); that of each token is alibaba/ROLL's ``_compute_topr_loss``. Numbers agree with both.

Implementation:
1. A sequence is a reply; with ``sequence = "branch"`` all that the policy said in a row.
2. w stops the gradient. A bad sample that the policy has outgrown no longer pushes, so that it is not driven to 0.
3. Good samples keep weight 1 however unlikely they have become: no ratio, no clip.
4. Figures per token: tapered_fraction, 1 where w is below 1 by more than rounding, which the log-ratios of equal
   policies have too; approx_kl as of ``clip``.

Differences: the paper tests the sign of the reward and weighs by the reward; here the advantage is both, so the
baseline decides which samples count as good, which the paper finds to matter. verl's option normalises the ratio by
length. Left out: ROLL's weights on good and bad samples, which scaling the advantage does too.

Watch: ``tapered_fraction`` is at most the share of bad tokens and grows with each update of a step; at 0 with several
updates nothing moves. ``approx_kl`` large: good samples pull without a bound, lower the rate.
"""

from typing import Literal

from manyturn.trainers.learn.objective.objective import OBJECTIVES, ObjectiveConfig, TokenLoss, Tokens
from manyturn.trainers.learn.objective.reply_sums import reply_sum

ROUNDING = 1e-3  # of a weight, whose log-ratio is a sum over a reply in single precision


class ToprConfig(ObjectiveConfig):
    name: Literal["topr"] = "topr"
    ratio: Literal["sequence", "token"] = "sequence"
    """The product of a sequence's ratios for all its tokens, or one ratio for each token."""

    def uses_sequences(self) -> bool:
        return super().uses_sequences() or self.ratio == "sequence"


@OBJECTIVES.register(ToprConfig)
def topr(tokens: Tokens, config: ToprConfig) -> TokenLoss:
    """Loss of every token.

    >>> import torch
    >>> old, new, reply = torch.full((1, 3), -1.0), torch.tensor([[-2.0, -1.5, -3.0]]), torch.tensor([[0, 0, 1]])
    >>> advantage = torch.tensor([[-1.0, -1.0, 1.0]])
    >>> topr(Tokens(new, old, advantage, torch.ones(1, 3), reply=reply), ToprConfig()).loss
    tensor([[-0.4463, -0.3347,  3.0000]])
    """
    log_ratio = tokens.log_ratio.detach()
    if config.ratio == "sequence":
        log_ratio = reply_sum(log_ratio, tokens.reply)
    weight = log_ratio.clamp(max=0).exp().masked_fill(tokens.advantage > 0, 1)
    figures = {"tapered_fraction": (weight < 1 - ROUNDING).to(weight.dtype), "approx_kl": -tokens.log_ratio.detach()}
    return TokenLoss(-weight * tokens.advantage * tokens.logp, figures)
