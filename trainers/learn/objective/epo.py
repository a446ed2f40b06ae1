"""EPO: entropy is rewarded, and held near the mean of its own history.

    L = -c (mean(H) - w mean(P))        H: entropy of a token in nats, R: the reference entropy,
                                        k: steps done before, K: steps of the schedule, which are the run's own

    form "paper"      P = alpha (relu(kappa_l R - H) + relu(H - kappa_r R))
                      w = 1 + exp(-gamma k / floor(K / 2)),  from 2 to 1 + exp(-2 gamma)
                      R = mean over all earlier steps of the mean entropy of a token; P = 0 in the first step
                      mean: over the tokens of a turn, then the turns of an episode, then episodes
    form "released"   P = alpha where H is not strictly between kappa_l R and kappa_r R, else 0
                      w = 1 - 0.2 (1 - exp(-2 k / h)) up to h = floor(K / 2),
                          then 0.8 exp(-3 (k - h) / (K - h))
                      R = of each turn's number, the mean over steps, the present one included
                      mean: the objective's aggregation

Source: arXiv 2509.22576v2, equations 2 to 6 and algorithm 1; the authors' code (WujiangXu/EPO) for the released form.
Numbers agree with both.

Implementation:
1. Entropy is of the learner's distribution at the sampling temperature, with gradient: over the full vocabulary, or
   where a reply was limited, over what could follow.
2. The history holds a step's mean entropy before its updates and is part of a checkpoint.
3. The gradient flows through H in both terms: below the range it pushes up by 1 + alpha w, above it by 1 - alpha w. So
   the upper end is a bound only where alpha w is above 1; with the authors' alpha entropy is rewarded there too.
4. With kappa_l = 0 the lower bound never acts.
5. It takes the place of the entropy bonus, which is refused together with it.
6. ``horizon`` gives another K. One that the run does not reach is refused: only the start of the schedule would act.

Differences: the released penalty is a constant: **it has no gradient and changes nothing but the reported loss**, so
what is left of the method is an entropy bonus; it is here to compare runs with the authors'. The paper's text lets the
weight grow late, its formula lets it fall; here the formula counts. The bounds 0.8 and 1.2 are the code's defaults; the
authors' own runs have 0 and 2, alpha 0.05 or 0.1. Left out of the released form: its mean over a reply with the padding
("seq" mode), its running only in micro-batches that reach turn 25, and its shift of turn numbers where an episode ends
early. A turn that a step's episodes do not reach counts as entropy 0 there, as in the code.

Watch: ``entropy`` against ``epo_reference``: falling below kappa_l of it the policy narrows faster than coef can hold,
raise coef or alpha; rising above kappa_r it forgets. ``epo_outside`` at 0: the range is so wide that only the bonus
acts; near 1 single tokens differ far more than the mean, which is usual of short replies.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, Self

import numpy as np
from pydantic import Field, model_validator

from manyturn.envs.contract.options.options import OnlyWith, Options
from manyturn.envs.contract.tasks.env_facts import EnvFacts
from manyturn.trainers.learn.objective.reply_sums import reply_length

if TYPE_CHECKING:
    from torch import Tensor


class EpoConfig(Options):
    """Entropy rewarded and held near its history."""

    form: Literal["paper", "released"] = "paper"
    """The paper's hinge, or the released code's constant, which has no gradient."""
    coef: float = Field(default=0.001, gt=0)
    """Weight c of the full term."""
    alpha: float = Field(default=0.1, gt=0)
    """Weight of the penalty inside."""
    kappa_l: float = Field(default=0.8, ge=0)
    """Lower end of the range, in units of the reference entropy; with 0 it has none."""
    kappa_r: float = Field(default=1.2, gt=0)
    """Upper end."""
    gamma: Annotated[float, OnlyWith("form", "paper")] = Field(default=1.0, ge=0)
    """How fast the paper's weight falls."""
    horizon: int | None = Field(default=None, ge=2)
    """Steps of the weight's schedule; unset: those of the run."""

    @model_validator(mode="after")
    def _is_a_range(self) -> Self:
        if self.kappa_l >= self.kappa_r:
            raise ValueError(f"kappa_l = {self.kappa_l} must be less than kappa_r = {self.kappa_r}")
        return self

    def refuse(self, run: Any, env: EnvFacts | None) -> str | None:
        if self.horizon is None or not run.steps or self.horizon <= run.steps:
            return None
        return (
            f"objective.epo.horizon = {self.horizon} is a schedule of {self.horizon} steps, of which a run of "
            f"{run.steps} sees the start alone: leave it out, and the schedule is the run's, or set steps = "
            f"{self.horizon}"
        )


class EntropyRange(NamedTuple):
    """The bounds that the history sets for a step.

    Attributes:
        reference: R for all turns, or of each turn by its number; empty before there is a history.
        weight: w.
    """

    reference: tuple[float, ...] = ()
    weight: float = 1.0


@dataclass
class EntropyHistory:
    """Mean entropies of past steps, as sums.

    Attributes:
        steps: how many.
        total: sum over steps of the mean entropy of a token.
        turns: by turn number, the sum over steps of the mean entropy of a token.
    """

    steps: int = 0
    total: float = 0.0
    turns: list[float] = field(default_factory=list)

    def add(self, entropy_T: np.ndarray, turn_T: np.ndarray) -> None:
        """A step's T tokens, with the number of the turn that each belongs to."""
        self.steps += 1
        self.total += float(entropy_T.mean())
        mean_t = np.bincount(turn_T, entropy_T) / np.bincount(turn_T).clip(min=1)
        self.turns += [0.0] * (len(mean_t) - len(self.turns))
        self.turns[: len(mean_t)] = (np.array(self.turns[: len(mean_t)]) + mean_t).tolist()

    def range(self, config: EpoConfig) -> EntropyRange:
        """The range for a step: the next one in the paper's form, the one added last in the released form."""
        horizon = config.horizon or 0
        if config.form == "released":
            reference = tuple(total / self.steps for total in self.turns)
            return EntropyRange(reference, released_weight(self.steps - 1, horizon))
        reference = (self.total / self.steps,) if self.steps else ()
        return EntropyRange(reference, paper_weight(self.steps, horizon, config.gamma))


def paper_weight(step: int, horizon: int, gamma: float) -> float:
    """The weight of the paper's schedule in the step of that number, from 0.

    >>> [round(paper_weight(k, 150, 1.0), 3) for k in (0, 75, 150)]
    [2.0, 1.368, 1.135]
    """
    return 1 + math.exp(-gamma * step / max(horizon // 2, 1))


def released_weight(step: int, horizon: int) -> float:
    """The weight of the released schedule.

    >>> [round(released_weight(k, 150), 3) for k in (0, 75, 76, 150)]
    [1.0, 0.827, 0.769, 0.04]
    """
    half = max(horizon // 2, 1)
    if step <= half:
        return 1 - 0.2 * (1 - math.exp(-2 * step / half))
    return 0.8 * math.exp(-3 * (step - half) / (horizon - half))


def epo(
    config: EpoConfig, entropy: "Tensor", reply: "Tensor", mean: Callable[["Tensor"], "Tensor"], now: EntropyRange
) -> tuple["Tensor", "Tensor"]:
    """The term of the loss, and which tokens are out of the range (B, L).

    >>> import torch
    >>> entropy, reply = torch.tensor([[1.0, 3.0]]), torch.tensor([[0, 0]])
    >>> term, outside = epo(EpoConfig(coef=1, alpha=1), entropy, reply, torch.mean, EntropyRange((2.0,), 1.5))
    >>> round(term.item(), 3), outside.tolist()
    (-1.1, [[1.0, 1.0]])

    Args:
        entropy: (B, L) with the gradient.
        reply: (B, L) number of the token's turn, -1 at masked positions.
        mean: from numbers per token to their mean.
        now: what the history says.
    """
    if not now.reference:
        return -config.coef * mean(entropy), entropy.new_zeros(entropy.shape)
    turn = reply.clamp(0, len(now.reference) - 1)
    reference = entropy.new_tensor(now.reference)[turn]
    low, high = config.kappa_l * reference, config.kappa_r * reference
    outside = 1 - ((low < entropy) & (entropy < high)).to(entropy.dtype)
    penalty = (low - entropy).relu() + (entropy - high).relu() if config.form == "paper" else outside
    return -config.coef * (mean(entropy) - now.weight * config.alpha * mean(penalty)), outside


def turn_mean(x: "Tensor", reply: "Tensor", turns: "Tensor | None", episodes: "int | Tensor") -> "Tensor":
    """These rows' share of the mean over the tokens of a turn, then over the turns of an episode, then over episodes.

    >>> import torch
    >>> x, reply = torch.tensor([[1.0, 3.0, 5.0]]), torch.tensor([[0, 0, 1]])
    >>> turn_mean(x, reply, None, episodes=1).item()
    3.5

    Args:
        x: (B, L) number per token.
        reply: (B, L) number of the token's reply in its row, -1 at masked positions.
        turns: (B,) turns of the row's episode; None: as many as the row has replies.
        episodes: in the full batch.
    """
    is_reply = (reply >= 0).to(x.dtype)
    share = is_reply / reply_length(reply, x)
    turns = share.sum(dim=1).clamp(min=1) if turns is None else turns
    return (x * share / turns[:, None]).sum() / episodes
