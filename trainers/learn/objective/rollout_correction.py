"""The difference between the engine that drew the tokens and the learner: measured, weighed, or left out.

    d = lp_learner - lp_engine          before the step's updates
    weight    w = exp(clamp(d, -20, 20)), of each token or of the sum over its sequence; at most ``cap``
              with ``floor``: 0 outside [floor, cap] (IcePop)
              with ``normalise``: over the mean of w, over tokens or over sequences
    reject    a token stays while each rule holds: -log(upper) <= k1 <= -log(lower), k2 and k3 <= upper, where
              k1 = -d, k2 = d^2 / 2, k3 = e^d - 1 - d, of the token or as sum, mean or maximum over its sequence

Source: truncated importance sampling, Yao et al., "Your efficient RL framework secretly brings you off-policy RL
training", 2025; two-sided: IcePop, arXiv 2510.18855. Numbers agree with verl's ``rollout_corr_helper``.

Implementation:
1. Weights multiply the loss of a token and carry no gradient; the objective's own ratio is still new over old learner.
2. They are computed over all said tokens of a step, before it is cut into minibatches, so no split changes them.
3. A token that is rejected counts in no mean of the loss; a weight of 0 counts.
4. It needs the learner's own log-probabilities (``learner.old_logprobs = "learner"``), a forward pass more a step.

Differences: TIS's authors truncate each token at 2; verl's default is the same. IcePop's bounds are 0.5 and 5. Left
out: verl's options that turn the full objective into a policy gradient, and thresholds as text.

Watch: ``engine_kl`` is 0 where both compute alike, and the correction does nothing; above 0.01 it matters.
``effective_samples`` well below 1: few tokens carry the step. ``engine_ratio_max`` beyond the cap says that it acts.
With rules, rejected_tokens is the share of tokens left out.
"""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, NamedTuple, Self

import numpy as np
from pydantic import Field, model_validator

from manyturn.envs.contract.options.options import OnlyWith, Options
from manyturn.envs.contract.tasks.env_facts import EnvFacts

FloatT = np.ndarray
IntT = np.ndarray


class TisConfig(Options):
    """Truncated importance weights."""

    level: Literal["token", "sequence"] = "token"
    """A weight for each token, or the product of a sequence's for all its tokens."""
    cap: float = Field(default=2.0, gt=1)
    """Greatest weight."""
    floor: float | None = Field(default=None, gt=0, lt=1)
    """Lowest weight; with it, weights outside [floor, cap] become 0 instead of cap."""
    normalise: bool = False
    """Divide by the step's mean weight."""

    def refuse(self, run: Any, env: EnvFacts | None) -> str | None:
        return _refuse_equals("correction", run)


class RejectConfig(Options):
    """A rule that a token has to keep to be learnt from."""

    divergence: Literal["k1", "k2", "k3"] = "k3"
    """Measure of the difference; k1 has a sign and two bounds."""
    over: Literal["token", "sum", "mean", "max"] = "token"
    """Of the token alone, or over its sequence: all its tokens are kept or left out."""
    upper: float = Field(gt=0)
    """Greatest divergence; with k1 the greatest ratio of learner over engine."""
    lower: Annotated[float | None, OnlyWith("divergence", "k1")] = Field(default=None, gt=0, lt=1)
    """With k1, the lowest ratio; unset: 1 / upper."""

    @model_validator(mode="after")
    def _tells_ratios_apart(self) -> Self:
        if self.divergence == "k1" and self.over == "max":
            raise ValueError("the maximum of k1 says nothing about ratios that are too large: use k2 or k3")
        if self.divergence == "k1" and self.upper <= 1:
            raise ValueError(f"with k1 upper is a ratio and must be greater than 1, not {self.upper}")
        return self

    def refuse(self, run: Any, env: EnvFacts | None) -> str | None:
        alike = [rule for rule in run.objective.reject if (rule.divergence, rule.over) == (self.divergence, self.over)]
        if len(alike) > 1:
            return (
                f"objective.reject has two rules of {self.divergence} over {self.over}, of which the narrower counts "
                "alone: keep that one"
            )
        return _refuse_equals("reject", run)


def _refuse_equals(option: str, run: Any) -> str | None:
    if run.learner.old_logprobs != "engine":
        return None
    return (
        f"objective.{option} compares the engine with the learner, which learner.old_logprobs = 'engine' takes for the "
        "same: set it to 'learner', or leave it out"
    )


class Sequences(NamedTuple):
    """To which of S sequences each of T tokens belongs.

    Attributes:
        number_T: 0 to S-1.
        length_S: tokens of each, at least 1.
    """

    number_T: IntT
    length_S: IntT

    @classmethod
    def of(cls, ids_T: np.ndarray) -> "Sequences":
        """From any ids: equal ones are one sequence."""
        _, number_T, length_S = np.unique(ids_T, return_inverse=True, return_counts=True)
        return cls(number_T, length_S)

    def sum(self, x_T: FloatT) -> FloatT:
        """Sum of each sequence (S,)."""
        return np.bincount(self.number_T, x_T, len(self.length_S))

    def max(self, x_T: FloatT) -> FloatT:
        """Maximum of each sequence (S,)."""
        out_S = np.full(len(self.length_S), -np.inf)
        np.maximum.at(out_S, self.number_T, x_T)
        return out_S


def mismatch(log_ratio_T: FloatT) -> dict[str, float]:
    """Figures on the difference: KL(engine, learner) by k3 in nats per token, and ratios far from 1 either way."""
    size_T = np.exp(np.abs(log_ratio_T).clip(max=20))
    return {
        "engine_kl": float(_divergence(log_ratio_T, "k3").mean()),
        "engine_ratio_p99": float(np.quantile(size_T, 0.99)),
        "engine_ratio_max": float(size_T.max()),
        "effective_samples": effective_share(np.exp(log_ratio_T.clip(-20, 20))),
    }


def importance_weights(config: TisConfig, log_ratio_T: FloatT, sequences: Sequences) -> FloatT:
    """The weight of each token (N,).

    >>> sequences = Sequences.of(np.array([0, 0, 1]))
    >>> importance_weights(TisConfig(), np.log([4.0, 0.5, 0.1]), sequences).round(3)
    array([2. , 0.5, 0.1])
    >>> importance_weights(TisConfig(level="sequence", floor=0.5), np.log([3.0, 0.5, 0.1]), sequences).round(3)
    array([1.5, 1.5, 0. ])
    """
    by_token = config.level == "token"
    log_weight = log_ratio_T if by_token else sequences.sum(log_ratio_T)
    weight = np.exp(log_weight.clip(-20, 20))
    if config.floor is None:
        weight = weight.clip(max=config.cap)
    else:
        weight = np.where((weight >= config.floor) & (weight <= config.cap), weight, 0.0)
    if config.normalise and weight.any():
        weight = weight / weight.mean()
    return weight if by_token else weight[sequences.number_T]


def keep_mask(rules: Sequence[RejectConfig], log_ratio_T: FloatT, sequences: Sequences) -> np.ndarray:
    """True for the tokens that keep all rules (N,).

    >>> rule = RejectConfig(divergence="k1", over="mean", upper=2.0)
    >>> keep_mask([rule], np.log([3.0, 1.0, 3.0]), Sequences.of(np.array([0, 0, 1]))).tolist()
    [True, True, False]
    """
    keep_T = np.ones(len(log_ratio_T), bool)
    for rule in rules:
        value = value_T = _divergence(log_ratio_T, rule.divergence)
        match rule.over:
            case "sum":
                value = sequences.sum(value_T)
            case "mean":
                value = sequences.sum(value_T) / sequences.length_S
            case "max":
                value = sequences.max(value_T)
        keep = value <= rule.upper
        if rule.divergence == "k1":
            lower = 1 / rule.upper if rule.lower is None else rule.lower
            keep = (value >= -np.log(rule.upper)) & (value <= -np.log(lower))
        keep_T &= keep if rule.over == "token" else keep[sequences.number_T]
    return keep_T


def effective_share(weight_T: FloatT) -> float:
    """Share of the tokens that equally weighted ones would have to be to say as much: (sum w)^2 / (N sum w^2)."""
    square = float(np.square(weight_T).sum())
    return float(weight_T.sum()) ** 2 / (len(weight_T) * square) if square else 0.0


def _divergence(log_ratio_T: FloatT, kind: str) -> FloatT:
    match kind:
        case "k1":
            return -log_ratio_T
        case "k2":
            return 0.5 * np.square(log_ratio_T)
        case _:
            clipped_T = log_ratio_T.clip(-20, 20)
            return np.exp(clipped_T) - 1 - clipped_T
