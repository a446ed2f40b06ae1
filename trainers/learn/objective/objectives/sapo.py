"""SAPO: a smooth gate in place of the clip.

    l = -A sigmoid(tau (r - 1)) 4 / tau      tau = tau_good where A > 0, tau_bad elsewhere;  r as of ``clip``

Source: arXiv 2511.20347. Numbers agree with ``compute_policy_loss_sapo`` of verl and with TRL's.

Implementation:
1. At r = 1 the gradient is that of the ratio itself, and it fades on both sides; bad tokens' fades sooner.
2. The gate replaces bounds: there are none, and no token is cut off.
3. The mean is over tokens of a sequence, which is a reply, then over sequences.
4. Figures per token: approx_kl as of ``clip``.

Differences: temperatures are the authors'; tau_bad is also used where A = 0, where it does not matter. The loss itself
is not 0 at r = 1 but -2 A / tau, a constant that has no gradient.

Watch: ``approx_kl`` takes the place of a clip fraction: above 0.05 the gate fades for many tokens, and gradients with
it, which shows in ``policy_loss`` moving without ``success``.
"""

from typing import Literal

from pydantic import Field

from manyturn.trainers.learn.objective.aggregate import Aggregation
from manyturn.trainers.learn.objective.objective import OBJECTIVES, ObjectiveConfig, TokenLoss, Tokens


class SapoConfig(ObjectiveConfig):
    name: Literal["sapo"] = "sapo"
    aggregation: Aggregation = "seq-mean-token-mean"
    """How tokens are weighted against each other; the paper averages over sequences."""
    tau_good: float = Field(default=1.0, gt=0)
    """How fast the gate closes for tokens with a positive advantage."""
    tau_bad: float = Field(default=1.05, gt=0)
    """How fast it closes for the others."""


@OBJECTIVES.register(SapoConfig)
def sapo(tokens: Tokens, config: SapoConfig) -> TokenLoss:
    """Loss of every token.

    >>> import torch
    >>> old, new, one = torch.zeros(1, 2), torch.tensor([[0.0, 1.0]]), torch.ones(1, 2)
    >>> sapo(Tokens(new, old, one, one), SapoConfig()).loss
    tensor([[-2.0000, -3.3916]])
    """
    ratio = tokens.log_ratio.clamp(-20, 20).exp()
    tau = ratio.new_full((), config.tau_good).where(tokens.advantage > 0, ratio.new_full((), config.tau_bad))
    gate = (tau * (ratio - 1)).sigmoid() * 4 / tau
    return TokenLoss(-tokens.advantage * gate, {"approx_kl": -tokens.log_ratio.detach()})
