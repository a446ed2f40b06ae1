"""Scores of methods: their credit on the turns of a sample, against the true effects."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from manyturn.trainers.credit.audit.correlation import (
    Estimate,
    Sums,
    centred,
    correlation,
    correlation_interval,
    difference_interval,
    sums_by_task,
)
from manyturn.trainers.credit.audit.effects import Effects, reliability
from manyturn.trainers.credit.audit.gradient_alignment import (
    Alignment,
    Update,
    alignment,
    exact_gradient,
    gradient_reliability,
)
from manyturn.trainers.credit.audit.method_credit import credit_of
from manyturn.trainers.credit.audit.sign_agreement import carrying_share, idle_credit, idle_K, sign_agreement
from manyturn.trainers.credit.audit.turn_sample import OWN, AuditSample
from manyturn.trainers.credit.batch.turn_batch import FloatK
from manyturn.trainers.credit.config import CreditConfig

BINS = 10
EQUAL = 1e-5  # share of the largest credit below which a difference is rounding


@dataclass(frozen=True)
class MethodScore:
    """Scores of a method's credit by one anchor.

    Attributes:
        correlation: with the true effect, over all turns.
        within: the same after both were centred on their episode.
        corrected: the correlation that a truth without noise would show: divided by the root of its reliability.
        over_base: by how much the correlation is above that of the first method.
        sign: share of the turns of certain effect whose credit has its sign; 0.5 is chance.
        noise: share of the credit's variance that true effects do not explain.
        slope: true effect for a unit of credit; 1 where credit is in units of the return.
        idle: size of the credit of turns without effect, over that of turns of certain effect.
        alignment: cosine of the implied update with the exact policy gradient; None where choices are not known.
        calibration: up to ten bins of equal size by credit: mean credit, mean true effect, turns.
        oracle: whether credit comes from columns that the audit makes from true values: it then shows what the method
            could do at most.
        same_as: the method that has the same credit on this sample, so that this row says nothing of its own; None:
            there is none.
    """

    method: str
    anchor: str
    correlation: Estimate
    within: Estimate
    corrected: float
    over_base: Estimate | None
    sign: Estimate
    noise: float
    slope: float
    idle: float
    alignment: Alignment | None
    calibration: Sequence[tuple[float, float, int]]
    oracle: bool = False
    same_as: str | None = None


class ScoredMethods(NamedTuple):
    """Scores of several methods.

    Attributes:
        scores: in the order of the methods, by each anchor that changes the credit.
        skipped: method -> why it could not be scored.
        credits: (method, anchor) -> credit (K).
    """

    scores: list[MethodScore]
    skipped: dict[str, str]
    credits: dict[tuple[str, str], FloatK]


@dataclass(frozen=True)
class TruthScore:
    """Scores of the truth itself.

    Attributes:
        reliability: share of the variance of the estimated effects that is true.
        reliability_within: the same after they were centred on their episode.
        certain: share of turns whose effect is three standard errors or more away from 0.
        idle: share of turns that do not matter, for certain.
        carrying: smallest share of turns that carries nine tenths of the squared effects.
        alignment: what an update by the true effect of the turns that were played can reach.
        gradient: reliability of the exact gradient, see ``gradient_reliability``; NaN where choices are not known.
    """

    reliability: float
    reliability_within: float
    certain: float
    idle: float
    carrying: float
    alignment: Alignment | None
    gradient: float


class Scorer:
    """Scores credit on one sample.

    Args:
        sample: turns with their true effects.
    """

    def __init__(self, sample: AuditSample):
        self.sample = sample
        self._exact: Sequence[Update] = [exact_gradient(choices) for choices in sample.choices]
        self._within_K = centred(sample.effects.effect_K, sample.batch.episode_K)
        self._base: Sums | None = None

    def truth(self) -> TruthScore:
        """Scores of the truth itself."""
        effects = self.sample.effects
        inside = Effects(self._within_K, effects.error_K, effects.value_K, effects.value_error_K)
        return TruthScore(
            reliability=reliability(effects),
            reliability_within=reliability(inside),
            certain=float(effects.certain_K().mean()),
            idle=float(idle_K(effects).mean()),
            carrying=carrying_share(effects),
            alignment=self._alignment(effects.effect_K),
            gradient=gradient_reliability(self.sample.choices),
        )

    def score(self, method: str, credit_K: FloatK, anchor: str = OWN) -> MethodScore:
        """Scores of credit (K); the first method that is scored is what others are compared with."""
        effects, task_K = self.sample.effects, self.sample.task_K
        sums = sums_by_task(credit_K, effects.effect_K, task_K)
        within = sums_by_task(centred(credit_K, self.sample.batch.episode_K), self._within_K, task_K)
        overall, trust = correlation_interval(sums), reliability(effects)
        over_base = None if self._base is None else difference_interval(sums, self._base)
        self._base = self._base or sums
        spread = float(credit_K.var())
        shared = float(np.mean((credit_K - credit_K.mean()) * (effects.effect_K - effects.effect_K.mean())))
        corrected = overall.mean / np.sqrt(trust) if trust > 0 else np.nan
        return MethodScore(
            method=method,
            anchor=anchor,
            correlation=overall,
            within=correlation_interval(within) if correlation(within.total()) else Estimate(0.0, 0.0, 0.0),
            corrected=float(np.clip(corrected, -1, 1)),
            over_base=over_base,
            sign=sign_agreement(credit_K, effects, task_K),
            noise=float(1 - np.clip(corrected, -1, 1) ** 2),
            slope=shared / spread if spread > 0 else np.nan,
            idle=idle_credit(credit_K, effects),
            alignment=self._alignment(credit_K),
            calibration=_calibration(credit_K, effects.effect_K),
        )

    def _alignment(self, credit_K: FloatK) -> Alignment | None:
        if not self._exact:
            return None
        by_task = np.split(credit_K, np.flatnonzero(np.diff(self.sample.task_K)) + 1)
        return alignment(self.sample.choices, by_task, self._exact)


def _calibration(credit_K: FloatK, effect_K: FloatK) -> list[tuple[float, float, int]]:
    """Bins of about equal size; turns of equal credit are in one bin."""
    edges = np.unique(np.quantile(credit_K, np.linspace(0, 1, BINS + 1)[1:-1]))
    bin_K = np.searchsorted(edges, credit_K, side="left")
    bins = [bin_K == number for number in range(len(edges) + 1)]
    return [(float(credit_K[one].mean()), float(effect_K[one].mean()), int(one.sum())) for one in bins if one.any()]


def score_methods(sample: AuditSample, methods: Mapping[str, CreditConfig]) -> ScoredMethods:
    """Scores of every method by every anchor that changes its credit."""
    scorer, scored = Scorer(sample), ScoredMethods([], {}, {})
    for name, config in methods.items():
        try:
            own_K = credit_of(sample, config)
            oracle = bool(sample.oracle & (config.needs.keys() | config.uses.keys()))
            marks = {"oracle": oracle, "same_as": _same_as(sample, config, own_K, scored)}
            scored.credits[name, OWN] = own_K
            scored.scores.append(replace(scorer.score(name, own_K), **marks))
            for anchor in sample.anchors:
                other_K = own_K if anchor == OWN else credit_of(sample, config, anchor)
                if not np.allclose(other_K, own_K, rtol=1e-9, atol=1e-12):
                    scored.credits[name, anchor] = other_K
                    scored.scores.append(replace(scorer.score(name, other_K, anchor), **marks))
        except ValueError as error:
            scored.skipped[name] = str(error)
    return scored


def _same_as(sample: AuditSample, config: CreditConfig, credit_K: FloatK, scored: ScoredMethods) -> str | None:
    """The advantage without the method's reward stages and modulations, or the first method, if the credit is equal."""
    if config.rewards or config.modulation:
        bare = config.model_copy(update={"rewards": (), "modulation": ()})
        return config.advantage.name if _is_equal(credit_K, credit_of(sample, bare)) else None
    first = next(iter(scored.credits), None)
    return first[0] if first and _is_equal(credit_K, scored.credits[first]) else None


def _is_equal(a_K: FloatK, b_K: FloatK) -> bool:
    return bool(np.allclose(a_K, b_K, rtol=0, atol=EQUAL * float(np.abs(b_K).max(initial=0.0))))
