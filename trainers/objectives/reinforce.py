"""REINFORCE: the plain policy gradient, without a ratio.

    l = -A lp

Right while samples come from the very policy that is trained: one update a step (``learner.minibatch`` no less than the
episodes of a step, ``learner.epochs = 1``). Source: Williams, 1992; numbers agree with LOOP's loss without clipping.

Figures per token: approx_kl as of ``clip``.
"""

from typing import Literal

from manyturn.trainers.objectives.objective import ObjectiveConfig, TokenLoss, Tokens
from manyturn.trainers.stages import OBJECTIVES


class ReinforceConfig(ObjectiveConfig):
    name: Literal["reinforce"] = "reinforce"


@OBJECTIVES.register(ReinforceConfig)
def reinforce(tokens: Tokens, config: ReinforceConfig) -> TokenLoss:
    """Loss of every token.

    >>> import torch
    >>> one = torch.ones(1, 2)
    >>> reinforce(Tokens(torch.tensor([[-0.5, -2.0]]), -one, 2 * one, one), ReinforceConfig()).loss
    tensor([[1., 4.]])
    """
    return TokenLoss(-tokens.advantage * tokens.logp, {"approx_kl": -tokens.log_ratio.detach()})
