"""REC, OPMD, AsymRE: REINFORCE for samples of any policy, held near the policy that drew them.

    l = -w A lp m + k2 (lp - lp_old)^2 - shift lp            r = exp(lp - lp_old), of the token
    w   r without gradient where ``importance``; else 1
    m   one-side   1 where A >= 0 and r <= 1 + high, or A <= 0 and r >= 1 - low
        two-side   1 where 1 - low <= r <= 1 + high
        ring       1 where two-side has it, or A >= 0 and r <= 1 - far_low, or A <= 0 and r >= 1 + far_high
        none       1

Source: "Group-Relative REINFORCE Is Secretly an Off-Policy Algorithm", arXiv 2509.24203: REC is l with m, REP-OPMD with
k2 alone (OPMD: Kimi k1.5, arXiv 2501.12599), REP-AsymRE with shift alone (AsymRE, arXiv 2506.20520: a baseline lower by
shift). Numbers are worked from the formulas, which have the form of modelscope/Trinity-RFT's ``rec_policy_loss.py``.

Implementation:
1. m and w stop the gradient. Without ``importance`` a token that counts pulls or pushes fully, however unlikely it is
   now: samples of earlier weights and of experts too.
2. m is over the ratio to ``lp_old``: with ``learner.old_logprobs = "engine"`` to the policy that drew the token, with
   "learner" to the one before the step's updates.
3. ``k2`` and ``shift`` are of all tokens, those that m leaves out too.
4. Figures per token: clip_fraction, the share that m leaves out; approx_kl as of ``clip``.

Differences: OPMD's own loss squares the difference of a reply's reward and the log-ratio of all its tokens; here, as in
Trinity-RFT, each token has its own term, and its factor 1/2 is in ``k2``. AsymRE's baseline is a mean of rewards less
``shift``, here the advantage has its own. Left out: ratios of sequences, and RED's weights and choice of samples.

Watch: ``clip_fraction`` 0 and ``approx_kl`` 0: one update of fresh samples, where it is REINFORCE. ``entropy`` falls
fast: lower the shift, which makes all that was said likelier.
"""

from typing import Annotated, Literal

from pydantic import Field

from manyturn.envs.contract.options.options import OnlyWith
from manyturn.trainers.learn.objective.objective import OBJECTIVES, ObjectiveConfig, TokenLoss, Tokens

_CLIPS = OnlyWith("clipping", "one-side", "two-side", "ring")
_RING = OnlyWith("clipping", "ring")


class RecConfig(ObjectiveConfig):
    name: Literal["rec"] = "rec"
    clipping: Literal["one-side", "two-side", "ring", "none"] = "one-side"
    """Tokens that count, by their ratio: those that have not moved too far already, as in PPO (one-side), on either
    side (two-side), these and those that are far on the other side (ring), or all of them."""
    low: Annotated[float, _CLIPS] = Field(default=0.2, gt=0, le=1)
    """Distance below 1 at which a ratio is too small."""
    high: Annotated[float, _CLIPS] = Field(default=0.2, gt=0)
    """Distance above 1 at which a ratio is too large."""
    far_low: Annotated[float, _RING] = Field(default=0.6, gt=0, le=1)
    """Distance below 1 from which a good token counts again."""
    far_high: Annotated[float, _RING] = Field(default=2.0, gt=0)
    """Distance above 1 from which a bad token counts again."""
    importance: bool = False
    """Weigh each token by its ratio."""
    k2: float = Field(default=0.0, ge=0)
    """Weight of the squared log-ratio, which holds the policy near the one that drew (OPMD)."""
    shift: float = Field(default=0.0, ge=0)
    """Amount by which the baseline is lowered, so that successes count more than failures (AsymRE)."""


@OBJECTIVES.register(RecConfig)
def rec(tokens: Tokens, config: RecConfig) -> TokenLoss:
    """Loss of every token.

    >>> import torch
    >>> old, new = torch.full((1, 3), -1.0), torch.tensor([[-0.5, -2.0, -1.0]])
    >>> tokens = Tokens(new, old, torch.tensor([[1.0, 1.0, -1.0]]), torch.ones(1, 3))
    >>> rec(tokens, RecConfig(k2=0.5, shift=0.1)).loss
    tensor([[ 0.1750,  2.7000, -0.9000]])
    """
    log_ratio, logp = tokens.log_ratio, tokens.logp
    ratio, good, bad = log_ratio.detach().clamp(-20, 20).exp(), tokens.advantage >= 0, tokens.advantage <= 0
    is_low, is_high = ratio < 1 - config.low, ratio > 1 + config.high
    if config.clipping == "one-side":
        counts = (good & ~is_high) | (bad & ~is_low)
    else:
        counts = ~(is_low | is_high) | (config.clipping == "none")
    if config.clipping == "ring":
        counts = counts | (good & (ratio <= 1 - config.far_low)) | (bad & (ratio >= 1 + config.far_high))
    weight = ratio if config.importance else 1.0
    loss = -weight * tokens.advantage * logp * counts + config.k2 * log_ratio.square() - config.shift * logp
    return TokenLoss(loss, {"clip_fraction": (~counts).to(loss.dtype), "approx_kl": -log_ratio.detach()})
