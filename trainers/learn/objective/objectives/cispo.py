"""CISPO: REINFORCE with the ratio as a clipped weight, so that no token loses its gradient.

    l = -sg(clamp(r, 1 - low, 1 + high)) A lp        r = exp(clamp(lp - lp_old, -20, 20))

Source: MiniMax-M1, arXiv 2506.13585, section 3.1. Numbers agree with ``compute_policy_loss_cispo`` of verl and, without
the lower bound, with TRL's, which takes 1 + high for its option.

Implementation:
1. sg stops the gradient: the ratio only weighs, and the gradient is that of lp.
2. ``low = "off"`` leaves small ratios as they are, which take weight from tokens that have become unlikely.
3. The mean is over the tokens of the minibatch.
4. Figures per token: clip_fraction, 1 where the weight was clipped; approx_kl as of ``clip``.

Differences: the paper has no lower bound and does not give its upper one; verl clips on both sides. Left out: the token
mask that the paper describes next to the clip.

Watch: ``clip_fraction`` is the share of tokens whose weight is cut, not of tokens lost; large with a growing
``approx_kl``: samples are too old for this many updates.
"""

from typing import Annotated, Literal

from pydantic import Field

from manyturn.trainers.learn.objective.objective import OBJECTIVES, ObjectiveConfig, TokenLoss, Tokens


class CispoConfig(ObjectiveConfig):
    name: Literal["cispo"] = "cispo"
    low: Annotated[float, Field(gt=0, le=1)] | Literal["off"] = "off"
    """How far the weight may fall below 1, or "off"."""
    high: float = Field(default=0.28, gt=0)
    """How far the weight may rise above 1."""


@OBJECTIVES.register(CispoConfig)
def cispo(tokens: Tokens, config: CispoConfig) -> TokenLoss:
    """Loss of every token.

    >>> import torch
    >>> old, new, one = torch.full((1, 2), -2.0), torch.tensor([[-2.1, -1.0]]), torch.ones(1, 2)
    >>> cispo(Tokens(new, old, one, one), CispoConfig()).loss
    tensor([[1.9002, 1.2800]])
    """
    ratio = tokens.log_ratio.detach().clamp(-20, 20).exp()
    weight = ratio.clamp(0 if config.low == "off" else 1 - config.low, 1 + config.high)
    figures = {"clip_fraction": (weight != ratio).to(ratio.dtype), "approx_kl": -tokens.log_ratio.detach()}
    return TokenLoss(-weight * tokens.advantage * tokens.logp, figures)
