"""Verdict on each probe: its rates on held-out tasks against those of the expert and of random actions."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from manyturn.agents.evaluation.statistics import Interval, holm, mean_interval, sign_flip_p
from manyturn.envs.conformance.solvability_checks import MARGIN

Verdict = Literal["paid", "paid in part", "not paid", "not judged", "reference"]
EXPERT, RANDOM = "expert", "random"
PAID_FROM = 0.75  # of the way from random actions to the expert
_SHOWN = 5
_SURE = 0.05  # p-value, adjusted for the number of probes, from which on a probe beats random actions by no chance


@dataclass(frozen=True)
class Rates:
    """Rates of one policy.

    Attributes:
        success: share of tasks that it solves, by Wilson's interval; None where success is not known.
        value: mean return, by Student's interval.
        paid_at: the first tasks at which it has a success.
        errors: episodes that an error of the environment ended; they are in no rate.
        cut: episodes that were not played to their end, since the environment is slow; no success.
        verdict: paid as the expert is; in part, if more than random actions are and not by chance; or not.
        reason: the figures by which it was judged.
    """

    name: str
    kind: str
    about: str
    success: Interval | None
    value: Interval
    paid_at: tuple[str, ...]
    errors: int
    first_error: str
    cut: int
    verdict: Verdict = "reference"
    reason: str = ""

    def plain(self) -> dict[str, Any]:
        """JSON values; ends of intervals that say nothing are null."""
        return {
            **{"name": self.name, "kind": self.kind, "about": self.about, "verdict": self.verdict},
            **{"reason": self.reason, "episodes": self.value.n_episodes, "errors": self.errors, "cut": self.cut},
            "success": None if self.success is None else _ends(self.success),
            "return": _ends(self.value),
            **{"paid_at": list(self.paid_at), "first_error": self.first_error},
        }


@dataclass(frozen=True)
class Thresholds:
    """Rates from which on a probe is paid: three quarters of the way from random actions to the expert.

    None where there is nothing to compare with.

    Where the expert has a return above 0, random actions count as 0 at least: what costs nothing earns nothing.
    """

    success: float | None
    value: float | None


def rates(rows: Sequence[Mapping[str, Any]], *, roles: int = 1) -> tuple[Thresholds, list[Rates]]:
    """Thresholds, and the rates of all policies with their verdicts.

    Args:
        rows: of ``manyturn.agents.scorecard.probe_play.played``, those of the references among them.
        roles: of the environment; from two on returns are not judged, since what one role wins another may lose.
    """
    by_name = {row["name"]: row for row in rows}
    policies = {name: _rates(row) for name, row in by_name.items()}
    expert, luck = policies.get(EXPERT), policies[RANDOM]
    levels = thresholds(expert, luck)
    levels = levels if roles == 1 else replace(levels, value=None)
    above = [name for name in policies if name not in (EXPERT, RANDOM) and _gain(by_name[name], by_name[RANDOM]) > 0]
    sure = dict(zip(above, holm([_p(by_name[name], by_name[RANDOM]) for name in above]), strict=True))
    judged = list[Rates]()
    for name, one in policies.items():
        if name == EXPERT:
            judged.append(one)
            continue
        verdict, reason = _of_luck(one, levels, expert) if name == RANDOM else _against(one, levels)
        if verdict == "not paid" and sure.get(name, 1.0) < _SURE:
            verdict, reason = "paid in part", f"success above that of random actions, p = {sure[name]:.2g}"
        judged.append(replace(one, verdict=verdict, reason=reason))
    return levels, judged


def thresholds(expert: Rates | None, luck: Rates) -> Thresholds:
    """Thresholds by the references; without an expert a success at every task stands in its place."""
    success = value = None
    best = 1.0 if expert is None else expert.success.mean if expert.success else math.nan
    if luck.success is not None and best > 0:
        success = luck.success.mean + PAID_FROM * (best - luck.success.mean)
    if expert is not None and expert.value.n_tasks:
        top, floor = expert.value.mean, luck.value.mean
        floor = max(floor, 0.0) if top > 0 else floor
        value = floor + PAID_FROM * (top - floor) if top > floor + 1e-9 else None
    return Thresholds(success, value)


def _rates(row: Mapping[str, Any]) -> Rates:
    success = {task: [float(word)] for task, word in row["success"].items() if word is not None}
    value = {task: [number] for task, number in row["return"].items()}
    return Rates(
        row["name"],
        row["kind"],
        row["about"],
        mean_interval(success, proportion=True) if success else None,
        mean_interval(value),
        tuple(task for task, [word] in success.items() if word)[:_SHOWN],
        row["errors"],
        row["first_error"],
        row["cut"],
    )


def _against(one: Rates, levels: Thresholds) -> tuple[Verdict, str]:
    """Verdict on a probe by the thresholds."""
    if not one.value.n_tasks:
        return "not judged", "no episode without an error"
    if levels.success is None and levels.value is None:
        return "not judged", "neither success nor the expert's return is known"
    if one.success is not None and levels.success is not None and one.success.mean >= levels.success:
        return "paid", f"success {one.success.mean:.2f} of {levels.success:.2f}"
    if levels.value is not None and one.value.mean >= levels.value:
        return "paid", f"return {one.value.mean:.2f} of {levels.value:.2f}"
    return "not paid", ""


def _of_luck(luck: Rates, levels: Thresholds, expert: Rates | None) -> tuple[Verdict, str]:
    """Verdict on random actions, which the thresholds are made from."""
    if luck.success is None or levels.success is None:
        return "not judged", "success is not known"
    best = 1.0 if expert is None or expert.success is None else expert.success.mean
    if luck.success.mean > best - MARGIN:
        return "paid", f"success within {MARGIN:g} of the expert's"
    return "not paid", ""


def _pairs(row: Mapping[str, Any], luck: Mapping[str, Any]) -> list[dict[str, list[float]]]:
    """Successes of both at the tasks that both have played."""
    pair = (row["success"], luck["success"])
    tasks = [task for task in pair[0] if all(of.get(task) is not None for of in pair)]
    return [{task: [float(of[task])] for task in tasks} for of in pair]


def _gain(row: Mapping[str, Any], luck: Mapping[str, Any]) -> float:
    one, other = _pairs(row, luck)
    return sum(one[task][0] - other[task][0] for task in one)


def _p(row: Mapping[str, Any], luck: Mapping[str, Any]) -> float:
    one, other = _pairs(row, luck)
    return sign_flip_p(one, other)


def _ends(interval: Interval) -> list[float | None]:
    return [None if math.isnan(end) else round(end, 4) for end in interval[:3]]
