"""PPO's clipped loss with DAPO's separate bounds and the dual clip.

    r = exp(clamp(lp - lp_old, -20, 20))      with ratio = "sequence": of the sums of lp and lp_old over the sequence
    l = max(-A r, -A clamp(r, 1 - low, 1 + high))
    where A < 0:  l = min(l, -dual A)

Source: PPO, arXiv 1707.06347, equation 7; bounds: DAPO, arXiv 2503.14476, section 3.1 (0.2 and 0.28); dual clip: arXiv
1912.09729, equation 5. Numbers agree with ``compute_policy_loss_vanilla`` of verl.

Implementation:
1. lp_old is recomputed by the learner before the step's updates, or taken as the engine drew
   (``learner.old_logprobs``); in the first update of a step r is 1, but for what engine and learner differ in.
2. A token whose bound is active has no gradient; which is active depends on the sign of A.
3. Tokens are weighed by ``aggregation``, with denominators of the full minibatch, so that micro-batches do not matter.
4. With ratio = "sequence" the tokens of a sequence all have its full loss, and only a mean over them counts it once;
   other aggregations are refused.
5. Figures per token: clip_fraction, 1 where the bounds were active; dual_clip_fraction, 1 where the dual clip was;
   approx_kl, lp_old - lp, the k1 estimate of KL(old, new).

Differences: the paper averages over tokens of full trajectories (token-mean), GRPO over the means of replies
(seq-mean-token-mean), Dr.GRPO divides by a constant. LOOP clips at [1 / (1 + e), 1 + e]: low = e / (1 + e), high = e,
dual = "off"; its loss per trajectory, and Turn-PPO's per turn, are ratio = "sequence"; numbers agree with LOOP's
``_ppo_loss``. Older code (verl-agent) does not clamp the log-ratio. An early
stop at a large divergence is the learner's (``learner.stop_kl``).

Watch: as a rule of thumb ``clip_fraction`` above 0.2 or ``approx_kl`` above 0.05: steps are too large for their
samples, lower the rate or the number of updates; both at 0 with several updates a step: nothing moves.
"""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from manyturn.trainers.learn.objective.objective import OBJECTIVES, ObjectiveConfig, TokenLoss, Tokens
from manyturn.trainers.learn.objective.reply_sums import reply_sum


class ClipConfig(ObjectiveConfig):
    name: Literal["clip"] = "clip"
    low: float = Field(default=0.2, gt=0, le=1)
    """How far the ratio may fall below 1."""
    high: float = Field(default=0.2, gt=0)
    """How far the ratio may rise above 1."""
    dual: Annotated[float, Field(gt=1)] | Literal["off"] = 3.0
    """Cap on a bad token's loss, in units of |A|; above 1, or "off"."""
    ratio: Literal["token", "sequence"] = "token"
    """One ratio for each token, or the product of a sequence's for all its tokens."""

    @property
    def averages_over_reply(self) -> bool:
        return self.ratio == "sequence"

    @model_validator(mode="after")
    def _sequences_count_once(self) -> Self:
        if self.ratio == "sequence" and self.aggregation != "seq-mean-token-mean":
            raise ValueError(
                f'ratio = "sequence" gives each token the full loss of its sequence, which {self.aggregation} counts '
                "once a token, so that good replies grow and bad ones shrink: "
                'set aggregation = "seq-mean-token-mean"'
            )
        return self


@OBJECTIVES.register(ClipConfig)
def clip(tokens: Tokens, config: ClipConfig) -> TokenLoss:
    """Loss of every token.

    >>> import torch
    >>> old, new = torch.zeros(1, 3), torch.tensor([[0.1, 1.0, 2.0]])
    >>> advantage = torch.tensor([[1.0, 1.0, -1.0]])
    >>> clip(Tokens(new, old, advantage, torch.ones(1, 3)), ClipConfig()).loss
    tensor([[-1.1052, -1.2000,  3.0000]])
    """
    log_ratio = tokens.log_ratio
    if config.ratio == "sequence":
        log_ratio = reply_sum(log_ratio, tokens.reply)
    ratio = log_ratio.clamp(-20, 20).exp()
    free = -tokens.advantage * ratio
    bounded = -tokens.advantage * ratio.clamp(1 - config.low, 1 + config.high)
    loss = free.maximum(bounded)
    figures = {"clip_fraction": (bounded > free).to(loss.dtype), "approx_kl": -tokens.log_ratio.detach()}
    if config.dual != "off":
        cap = -config.dual * tokens.advantage
        capped = (loss > cap) & (tokens.advantage < 0)
        figures["dual_clip_fraction"] = capped.to(loss.dtype)
        loss = loss.minimum(cap).where(tokens.advantage < 0, loss)
    return TokenLoss(loss, figures)
