"""Estimators of the KL divergence from a reference policy, per token.

    d = lp - lp_ref
    k1 = d      k2 = d^2 / 2      k3 = e^-d - 1 + d      abs = |d|
    k1+, k3+: value of k1, k3 with the gradient of k2
    loss + coef agg(k)    or, with place = "reward",    r_l - coef k_l        agg: the objective's aggregation

Source: Schulman, "Approximating KL divergence", 2020; names, clamps (d to +-20, k3 to +-10) and the straight-through
forms from verl's ``kl_penalty``, with which numbers agree; in-reward KL from verl-agent's ``apply_kl_penalty``.

Implementation:
1. The reference is the policy at the end of the warm-up, whose weights are kept; it costs a forward pass a step.
2. In the reward the divergence is that before the step's updates, charged to each token that the policy said.
3. With a target the weight follows the divergence, c <- c (1 + clip(KL / target - 1, -0.2, 0.2) n / horizon) after each
   step of n sequences: Ziegler et al., arXiv 1909.08593, section 2.2; numbers agree with verl's
   ``AdaptiveKLController``.

Differences: GRPO and GiGPO have k3 in the loss, whose gradient on the policy's own samples is biased; k2 has that of
the KL divergence, and k1 none on average, which is why it is refused there. PPO and REINFORCE++ charge k1 in the
reward. Left out: the estimator over the full vocabulary, which needs all logits of the reference.

Watch where estimator = "k3": ``kl_clamped``, the share of tokens beyond its clamp, which get no pull back to the
reference; k2 has no clamp.

Watch: ``reference_kl`` grows from 0; while it stays below 0.01 the term does nothing, and when it stops with
``success`` the leash is too short: lower coef.
"""

from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import Field, model_validator

from manyturn.envs.contract.options.options import OnlyWith, Options

if TYPE_CHECKING:
    from torch import Tensor

Estimator = Literal["k1", "k2", "k3", "abs", "k1+", "k3+"]


HORIZON = 10_000


class KlConfig(Options):
    """KL divergence from the reference policy, added to the loss or taken from the rewards."""

    coef: float = Field(gt=0)
    """Weight, the first one if it adapts."""
    estimator: Estimator = "k3"
    """k3 is what GRPO and GiGPO use; k2, k1+ and k3+ have the right gradient; k1 is for rewards alone."""
    place: Literal["loss", "reward"] = "loss"
    """Where it counts: in the loss, or as a cost of each token for advantages that value tokens."""
    target: float | None = Field(default=None, gt=0)
    """Divergence per token at which the weight comes to rest; unset keeps the weight."""
    horizon: Annotated[int, OnlyWith("target")] = Field(default=HORIZON, ge=1)
    """Sequences over which the weight adapts."""

    @model_validator(mode="after")
    def _has_a_gradient(self) -> Self:
        if self.estimator == "k1" and self.place == "loss":
            raise ValueError("k1 as a loss has a gradient of mean zero, so that it only adds noise: use k1+ or k2")
        return self


def adapted(coef: float, divergence: float, sequences: int, config: KlConfig) -> float:
    """The weight after a step of so many sequences with that mean divergence per token.

    >>> round(adapted(0.2, divergence=0.5, sequences=1000, config=KlConfig(coef=0.2, target=0.1)), 6)
    0.204
    """
    if config.target is None:
        return coef
    error = min(max(divergence / config.target - 1, -0.2), 0.2)
    return coef * (1 + error * sequences / config.horizon)


def kl(logp: "Tensor", ref_logp: "Tensor", estimator: Estimator) -> "Tensor":
    """KL per token, with the gradient that ``estimator`` promises.

    >>> import torch
    >>> logp, ref_logp = torch.tensor([0.0], requires_grad=True), torch.tensor([-0.5])
    >>> value = kl(logp, ref_logp, "k1+")
    >>> value.item(), torch.autograd.grad(value.sum(), logp)[0].item()
    (0.5, 0.5)

    Args:
        logp, ref_logp: log-probabilities, of one shape.
    """
    d = logp - ref_logp
    match estimator:
        case "k1":
            return d
        case "k2":
            return 0.5 * d.square()
        case "k3":
            clamped = d.clamp(-20, 20)
            return ((-clamped).exp() + clamped - 1).clamp(-10, 10)
        case "abs":
            return d.abs()
        case "k1+" | "k3+":
            value = kl(logp, ref_logp, "k1" if estimator == "k1+" else "k3").detach()
            gradient = kl(logp, ref_logp, "k2")
            return gradient - gradient.detach() + value


def is_clamped(logp: "Tensor", ref_logp: "Tensor") -> "Tensor":
    """True where k3 is at its clamp, so that a term in the loss has no gradient.

    >>> import torch
    >>> is_clamped(torch.tensor([-1.0, -3.0]), torch.tensor([-0.5, -0.1])).tolist()
    [False, True]
    """
    d = logp.detach() - ref_logp
    return ((-d.clamp(-20, 20)).exp() + d - 1).abs() >= 10


def kl_in_reward(reward_BL: "Tensor", kl_BL: "Tensor", mask_BL: "Tensor", coef: float) -> tuple["Tensor", "Tensor"]:
    """Rewards minus coef x KL at the policy's tokens, and the KL's mean over each row's tokens, then over rows.

    >>> import torch
    >>> reward, mean = kl_in_reward(torch.tensor([[0.0, 1.0]]), torch.tensor([[0.2, 9.0]]), torch.tensor([[1, 0]]), 0.5)
    >>> reward.tolist(), round(mean.item(), 3)
    ([[-0.10000000149011612, 1.0]], 0.2)
    """
    keep_BL = mask_BL.bool()
    kl_BL = kl_BL.detach().masked_fill(~keep_BL, 0)
    mean_B = kl_BL.sum(dim=-1) / keep_BL.sum(dim=-1).clamp(min=1)
    return reward_BL - coef * kl_BL, mean_B[keep_BL.any(dim=-1)].mean()
