"""REINFORCE: the plain policy gradient, without a ratio.

    l = -A lp

Source: Williams, 1992; numbers agree with LOOP's loss without clipping.

Implementation:
1. Right while samples come from the very policy that is trained: one update a step (``learner.minibatch`` no less than
   the episodes of a step, ``learner.epochs = 1``; anything else is refused).
2. The mean is over the tokens of the minibatch, each with its turn's advantage, which is the gradient of full episodes
   over a constant.
3. Figures per token: approx_kl as of ``clip``.

Differences: RLOO's and OPO's papers sum over a reply and average over replies; dividing by the number of tokens of the
step instead changes the length of the gradient alone.

Watch: ``approx_kl`` is 0 but for rounding, since training is on policy; away from 0 engine and learner disagree.
"""

from typing import ClassVar, Literal

from manyturn.trainers.learn.objective.objective import OBJECTIVES, ObjectiveConfig, TokenLoss, Tokens


class ReinforceConfig(ObjectiveConfig):
    needs_fresh_samples: ClassVar[bool] = True
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
