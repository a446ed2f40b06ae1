"""Entropy-balanced clip (agentic AEPO): PPO's, but good tokens above the upper bound keep a gradient.

    l = max(-A r, -A c)      c = clamp(r, 1 - low, 1 + high), above the upper bound (1 + high) r / sg(r)

Source: agentic entropy-balanced policy optimisation, arXiv 2510.14545. No numbers of the authors are at hand.

Implementation:
1. A good token whose ratio has risen above 1 + high still pulls, as strongly as one at the bound.
2. Everything else is ``clip`` without the dual clip: bad tokens below 1 - low have no gradient.
3. The mean is over the tokens of the minibatch.
4. Figures per token: clip_fraction and approx_kl as of ``clip``.

Differences: the advantage scaled by 1 + a z(entropy) is credit and no loss: ``entropy_weight``. The re-implementation
in ARLArena gives the gradient to tokens of low entropy, the reverse of the description, and is not followed. Left out:
the branching of rollouts by entropy, which the released code does not have either.

Watch: ``clip_fraction`` counts good tokens above the bound although they keep a gradient; ``approx_kl`` above 0.05:
since nothing holds those, the rate has to.
"""

from typing import Literal

from pydantic import Field

from manyturn.trainers.learn.objective.objective import OBJECTIVES, ObjectiveConfig, TokenLoss, Tokens


class EntropyBalancedConfig(ObjectiveConfig):
    name: Literal["entropy_balanced"] = "entropy_balanced"
    low: float = Field(default=0.2, gt=0, le=1)
    """How far the ratio may fall below 1."""
    high: float = Field(default=0.28, gt=0)
    """How far the ratio may rise above 1 before the gradient stops growing."""


@OBJECTIVES.register(EntropyBalancedConfig)
def entropy_balanced(tokens: Tokens, config: EntropyBalancedConfig) -> TokenLoss:
    """Loss of every token.

    >>> import torch
    >>> new = torch.tensor([[1.0]], requires_grad=True)
    >>> tokens = Tokens(new, torch.zeros(1, 1), torch.ones(1, 1), torch.ones(1, 1))
    >>> loss = entropy_balanced(tokens, EntropyBalancedConfig(high=0.5)).loss
    >>> loss.item(), torch.autograd.grad(loss, new)[0].item()
    (-1.5, -1.5)
    """
    ratio = tokens.log_ratio.clamp(-20, 20).exp()
    top = 1 + config.high
    at_top = top * (tokens.logp - tokens.logp.detach()).exp()
    bound = at_top.where(ratio > top, ratio.clamp(min=1 - config.low))
    free, bounded = -tokens.advantage * ratio, -tokens.advantage * bound
    figures = {"clip_fraction": (bounded > free).to(free.dtype), "approx_kl": -tokens.log_ratio.detach()}
    return TokenLoss(free.maximum(bounded), figures)
