"""Scores of methods: their credit on the turns of a sample, against the true effects."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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
from manyturn.trainers.credit.audit.sample import OWN, AuditSample
from manyturn.trainers.credit.audit.sign_agreement import carrying_share, idle_credit, idle_K, sign_agreement
from manyturn.trainers.credit.batch.turn_batch import FloatK
from manyturn.trainers.credit.config import CreditConfig
from manyturn.trainers.credit.pipeline import credit

BINS = 10
LACKS = {
    **dict.fromkeys(
        ("longest_reply", "longest_episode"), "a limit of a run's: give it lengths, as overlong:max_tokens=64,buffer=16"
    ),
    "belief": "for which the environment has to name a true answer: override answer()",
    "progress": "which the environment does not report: override progress()",
    "confidence": "which only replies of a language model state: measure it by training",
    "tempered": "which members that a run draws at another temperature have: measure it by training",
    "tool_calls": "which only replies of a language model have: take another stratum, as stratified:stratum=turns",
}
"""Column -> why an audit may lack it, and what to do."""
BRANCHES = "drawer"  # the column of methods that compare the branches of a situation


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


def credit_of(sample: AuditSample, config: CreditConfig, anchor: str = OWN) -> FloatK:
    """The credit (K) that a method gives by an anchor.

    Raises:
        ValueError: the method needs what the sample lacks; the text says what.
    """
    batch = sample.batch_by(anchor)
    if BRANCHES in config.needs and sample.branched is not None:
        return credit(sample.branched, config).advantage_K[: len(sample.task_K)]
    there = batch.columns.keys() | batch.token_columns.keys()
    for column, stage in config.needs.items():
        if column not in there:
            raise ValueError(
                f"{stage} needs the column {column!r}, {LACKS.get(column, 'which this audit cannot supply')}"
            )
    return credit(batch, config).advantage_K


def score_methods(
    sample: AuditSample, methods: Mapping[str, CreditConfig]
) -> tuple[list[MethodScore], dict[str, str], dict[tuple[str, str], FloatK]]:
    """Scores of every method by every anchor that changes its credit.

    Returns:
        The scores in the order of the methods; method -> why it could not be scored; (method, anchor) -> credit (K).
    """
    scorer, scores, skipped = Scorer(sample), list[MethodScore](), dict[str, str]()
    credits: dict[tuple[str, str], FloatK] = {}
    for name, config in methods.items():
        try:
            own_K = credit_of(sample, config)
            credits[name, OWN] = own_K
            scores.append(scorer.score(name, own_K))
            for anchor in sample.anchors:
                other_K = own_K if anchor == OWN else credit_of(sample, config, anchor)
                if not np.allclose(other_K, own_K, rtol=1e-9, atol=1e-12):
                    credits[name, anchor] = other_K
                    scores.append(scorer.score(name, other_K, anchor))
        except ValueError as error:
            skipped[name] = str(error)
    return scores, skipped, credits
