"""The result of an audit: scores of methods and anchors, what they rest on, and all of it as JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from typing import Any

import numpy as np

from manyturn.trainers.credit.audit.anchor_quality import AnchorScore, anchor_scores
from manyturn.trainers.credit.audit.scores import MethodScore, Scorer, TruthScore, score_methods
from manyturn.trainers.credit.audit.turn_sample import OWN, AuditSample
from manyturn.trainers.credit.batch.turn_batch import FloatK
from manyturn.trainers.credit.config import CreditConfig
from manyturn.trainers.credit_audit.audit_loop import Audited
from manyturn.trainers.credit_audit.config import AuditConfig
from manyturn.trainers.credit_audit.scoring_sample import ORACLE, audited_tasks

_FIXES = {
    "steps": "Raise --steps",
    "seconds": "Raise --seconds, or leave it out,",
    "most": "Lower --reliability, or audit a policy whose turns matter more,",
    "passes": "Lower --reliability, or audit a policy whose turns matter more,",
}
FORGETS = 0.1  # share of the spread of values from which an anchor is said to forget what decides
RECURS = 0.3  # share of turns with a companion below which an anchor is said not to come back


@dataclass(frozen=True, eq=False)
class CreditAudit:
    """Scores of methods on one environment and policy.

    Attributes:
        played: episodes, and continuations of their situations.
        sample: their K turns with the true effect of each, as ``sample.effects``.
        truth: how reliable the effects are, and how many turns matter.
        scores: of each method by each anchor that changes its credit.
        skipped: method -> why it could not be scored.
        anchors: how each kind of anchor fares.
        credits: (method, anchor) -> credit of the K turns.
    """

    env: str
    env_args: Mapping[str, Any]
    policy: str
    config: AuditConfig
    played: Audited = field(repr=False)
    sample: AuditSample = field(repr=False)
    truth: TruthScore
    scores: Sequence[MethodScore]
    skipped: Mapping[str, str]
    anchors: Sequence[AnchorScore]
    credits: Mapping[tuple[str, str], FloatK] = field(repr=False)

    @classmethod
    def of(
        cls,
        about: tuple[str, Mapping[str, Any], str],
        config: AuditConfig,
        played: Audited,
        methods: Mapping[str, CreditConfig],
        anchors: Sequence[str],
    ) -> "CreditAudit":
        """Score methods on what was played.

        Args:
            about: environment, its arguments, and the policy's name.
            anchors: kinds to compare the environment's own anchor with.
        """
        sample = AuditSample.of(audited_tasks(played.tasks, config.siblings, anchors), ORACLE)
        scores, skipped, credits = score_methods(sample, methods)
        truth = Scorer(sample).truth()
        return cls(*about, config, played, sample, truth, scores, skipped, anchor_scores(sample), credits)

    @property
    def ranked(self) -> list[MethodScore]:
        """Scores by the environment's own anchor, the highest correlation first: without methods that are given true
        values, and without those that change nothing here."""
        return self._sorted(oracle=False)

    @property
    def oracles(self) -> list[MethodScore]:
        """Scores of methods that are given true values, such as those of a perfect critic, the highest first."""
        return self._sorted(oracle=True)

    @property
    def without_effect(self) -> dict[str, str]:
        """Method -> the method that has the same credit on these turns."""
        return {score.method: score.same_as for score in self.scores if score.same_as is not None}

    def _sorted(self, *, oracle: bool) -> list[MethodScore]:
        own = [one for one in self.scores if one.anchor == OWN and one.same_as is None and one.oracle == oracle]
        return sorted(own, key=lambda score: -score.correlation.mean)

    @property
    def branches(self) -> float:
        """Branches that methods see for each episode of the group; NaN: none were played."""
        if self.sample.branched is None:
            return float("nan")
        episodes = sum(len(task.episodes) for task in self.played.tasks)
        return len(self.sample.branched.truncated_E) / episodes - 1

    @property
    def success(self) -> float:
        """Share of episodes that reached the goal; NaN where that is not known."""
        ends = [episode.success for task in self.played.tasks for episode in task.episodes]
        return float(np.mean([bool(end) for end in ends])) if None not in ends else float("nan")

    @property
    def remarks(self) -> list[str]:
        """Sentences on the truth and on each anchor."""
        lines = []
        if self.played.ended == "equal returns":
            lines.append(
                "All continuations earned the same, so that no turn has an effect: audit another policy or task."
            )
        elif self.truth.reliability < self.config.reliability:
            lines.append(
                f"The reliability of the truth is {self.truth.reliability:.3f}, below {self.config.reliability:g}. "
                f"{_FIXES[self.played.ended]} before you rank by this table."
            )
        for score in self.anchors:
            if score.shared < RECURS:
                lines.append(
                    f"By the anchor {score.anchor} only {score.shared:.0%} of turns have a companion to compare with."
                )
            elif score.forgotten.low > FORGETS:
                lines.append(
                    f"The anchor {score.anchor} forgets what decides: {score.forgotten.mean:.0%} of the spread of "
                    "values is among turns that it treats as one situation."
                )
        return [*lines, *self._least_forgetful()]

    def _least_forgetful(self) -> list[str]:
        """The anchor that forgets least of those that come back, if another of these forgets for certain more."""
        recurring = sorted((score for score in self.anchors if score.shared >= RECURS), key=lambda one: -one.shared)
        least = min(recurring, key=lambda score: score.forgotten.mean, default=None)
        worst = max((score.forgotten.low for score in recurring), default=0.0)
        if least is None or not worst > max(FORGETS, least.forgotten.mean):
            return []
        return [
            f"Of the anchors that recur, {least.anchor} forgets least: {least.forgotten.mean:.0%} of that spread, with "
            f"a companion for {least.shared:.0%} of turns."
        ]

    @property
    def summary(self) -> dict[str, Any]:
        """All figures as JSON values."""
        return {
            "manyturn": version("manyturn"),
            "env": self.env,
            "env_args": dict(self.env_args),
            "policy": self.policy,
            "options": self.config.model_dump(mode="json"),
            "played": {
                "tasks": len(self.played.tasks),
                "episodes": sum(len(task.episodes) for task in self.played.tasks),
                "turns": len(self.sample.task_K),
                "success": self.success,
                "continuations": self.played.continuations,
                "branches_per_episode": plain(self.branches),
                "steps": self.played.steps,
                "ended": self.played.ended,
                "passes": list(self.played.passes),
            },
            "truth": plain(asdict(self.truth)),
            "methods": [plain(asdict(score)) for score in self.scores],
            "skipped": dict(self.skipped),
            "without_effect": self.without_effect,
            "anchors": [plain(score._asdict()) for score in self.anchors],
            "remarks": self.remarks,
        }


def plain(value: Any) -> Any:
    """Values as JSON holds them: named tuples as tables, numbers that are none as null."""
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, Mapping):
        return {name: plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, float | np.floating):
        return round(float(value), 6) if np.isfinite(value) else None
    return value
