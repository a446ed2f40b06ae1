"""Policies against each other on the same tasks: differences, p-values, and which tasks became worse."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from manyturn.agents.evaluation.remarks import is_limited
from manyturn.agents.evaluation.statistics import (
    Interval,
    Values,
    detectable_difference,
    holm,
    is_share,
    mean_interval,
    paired_difference,
    sign_flip_p,
)
from manyturn.agents.evaluation.summary import part_names, replies_of, scored_rows
from manyturn.agents.play.episode import Ending
from manyturn.agents.records.episode_rows import Row, read_episodes
from manyturn.agents.records.folder_suggestion import near_folder
from manyturn.agents.records.tables import table_in
from manyturn.envs.contract.tasks.env_identity import KEY, EnvIdentity, differences, listed
from manyturn.envs.contract.tasks.panel import Panel, PanelError, portable_name, selection_remark

SCHEMA_VERSION = 2
METRICS = ("success", "success_errors_as_failures", "return")
_ERRORS = frozenset(ending.value for ending in Ending if ending.is_error)
_SAID = ("seed", "repeats", "max_turns", "args", "sampling")


class CompareError(ValueError):
    """The evaluations cannot be compared; the text says how to fix it."""


@dataclass(frozen=True)
class Evaluated:
    """An evaluation that was read from its folder.

    Attributes:
        folder: where it is.
        panel: N tasks.
        rows: E rows of ``records.EPISODES``, all of tasks of the panel.
        summary: plain values, see ``summary.summarise``.
        env_identity: of the environment that it was played in; None where it is unknown.
    """

    folder: Path
    panel: Panel
    rows: list[Row]
    summary: Mapping[str, Any]

    @property
    def env_identity(self) -> EnvIdentity | None:
        return EnvIdentity.of(self.summary)


def read_evaluation(path: Path) -> Evaluated:
    """Read what ``evaluate`` wrote.

    Args:
        path: the folder of an evaluation, or of a run, then its ``evaluation`` is read.

    Raises:
        CompareError: there is none, it is not finished, or its files do not belong together.
    """
    places = [folder for folder in (path, path / "evaluation") if folder.is_dir()]
    complete = [
        folder for folder in places if (folder / "summary.json").is_file() and (folder / "panel.json").is_file()
    ]
    if not complete:
        if any((folder / "episodes.jsonl").is_file() for folder in places):
            raise CompareError(f"the evaluation in {path} is not finished: the command that began it continues it")
        if several := sorted(file.parent for file in (path / "evaluation").glob("*/summary.json")):
            names = " ".join(map(str, several))
            raise CompareError(f"{path} was evaluated in several environments: name one of {names}")
        if not path.exists() and (near := near_folder(path)):
            raise CompareError(f"there is no folder {path}: did you mean {near}?")
        if below := sorted(file.parent for file in path.glob("**/summary.json")):
            raise CompareError(f"{path} holds evaluations: name one of them, such as {below[-1]}")
        raise CompareError(f"{path} holds no evaluation: make one with manyturn evaluate POLICY --out {path}")
    folder = complete[0]
    try:
        panel = Panel.from_json((folder / "panel.json").read_text(encoding="utf-8"))
        summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
        rows = read_episodes(table_in(folder, "episodes"))
        fits = summary["panel"]["hash"] == panel.hash and {row["content"] for row in rows} == set(panel.contents)
    except PanelError as error:
        raise CompareError(f"{folder}/panel.json: {error}") from None
    except (OSError, KeyError, TypeError, json.JSONDecodeError, UnicodeDecodeError) as error:
        raise CompareError(f"{folder} holds no complete evaluation: {type(error).__name__}: {error}") from error
    if not fits:
        raise CompareError(f"{folder}: summary, panel and episodes are of different tasks: evaluate again")
    return Evaluated(folder, panel, rows, summary)


def same_tasks(evaluations: Sequence[Evaluated], *, shared: bool = False) -> dict[str, str]:
    """Content -> id of the tasks to compare over, in the order and with the ids of the first.

    Args:
        shared: take the tasks that all have, where panels differ.

    Raises:
        CompareError: the environments or their users differ; or the panels do, and ``shared`` is not asked for or
            they have nothing in common.
    """
    first = evaluations[0].panel
    common = dict(zip(first.contents, first.tasks, strict=True))
    for other in evaluations[1:]:
        if portable_name(other.panel.env) != portable_name(first.env):
            raise CompareError(
                f"{evaluations[0].folder} is of {first.env}, {other.folder} of {other.panel.env}: "
                "evaluate both on one environment"
            )
        talked_to = [each.summary.get("user") for each in (evaluations[0], other)]
        if talked_to[0] != talked_to[1]:
            raise CompareError(
                f"{evaluations[0].folder} talks to {talked_to[0]}, {other.folder} to {talked_to[1]}: evaluate both "
                "with one user"
            )
        theirs = set(other.panel.contents)
        common = {content: task for content, task in common.items() if content in theirs}
    odd = next((other for other in evaluations[1:] if other.panel.hash != first.hash), None)
    if odd is None or (shared and common):
        return common
    differing = (
        f"{first.id} (hash {first.hash[:8]}) and {odd.panel.id} (hash {odd.panel.hash[:8]}) are different panels"
    )
    if not common:
        raise CompareError(f"{differing} without a common task: evaluate again on one panel, with --panel")
    shown = ", ".join(map(repr, list(common.values())[:3])) + (" …" if len(common) > 3 else "")
    raise CompareError(
        f"{differing}: {len(common)} tasks are in all of them ({shown}); --shared compares over those, or evaluate "
        "again on one panel, with --panel"
    )


def values_over(rows: Sequence[Row], metric: str, tasks: Mapping[str, str]) -> dict[str, list[float]]:
    """Task id -> its episodes' values; errors are left out, or count as failures where the metric's name says so.

    Args:
        metric: one of ``METRICS``.
        tasks: content -> id, as ``same_tasks`` gives them.
    """
    column = metric.removesuffix("_errors_as_failures")
    # An environment that does not report success has no failures either.
    reports_success = all(row["success"] is not None or row["ending"] in _ERRORS for row in rows)
    values: dict[str, list[float]] = {}
    for row in rows:
        value = row[column]
        if metric != column and reports_success and row["ending"] in _ERRORS:
            value = False
        if value is not None and row["content"] in tasks:
            values.setdefault(tasks[row["content"]], []).append(float(value))
    return values


def part_values(rows: Sequence[Row], part: str, tasks: Mapping[str, str]) -> dict[str, list[float]]:
    """The same of a reward part's sums; an episode that does not have the part earned nothing by it."""
    values: dict[str, list[float]] = {}
    for row in rows:
        value = None if row["ending"] in _ERRORS else row["parts"].get(part, 0.0)
        if value is not None and row["content"] in tasks:
            values.setdefault(tasks[row["content"]], []).append(float(value))
    return values


def compare(evaluations: Sequence[Evaluated], *, shared: bool = False) -> dict[str, Any]:
    """Each evaluation against the first, as plain values for JSON.

    A comparison holds for each metric the ``difference`` (of task means, this one minus the first) with its
    95 % interval paired by task, ``p`` of the sign-flip test and ``p_holm``, adjusted for the number of comparisons;
    ``wins``, ``losses`` and ``ties`` count tasks by their means; ``detectable`` is the smallest true difference that
    these tasks would show in four of five times. The test never calls alike policies different more often than it says,
    which makes it cautious where most tasks are ties; the interval comes closer (benchmarks/runs/interval_coverage.py).
    ``regressions`` are all tasks with a loss, worst first, by success or, where success is not known, by return.
    ``left_out`` names tasks on which one side had nothing but errors. ``parts`` holds the same of each reward part.
    ``env_differences`` says in what the environments differ; None where the identity of one of them is unknown.

    Raises:
        CompareError: see ``same_tasks``.
    """
    if len(evaluations) < 2:
        raise CompareError("a comparison takes two evaluations at least")
    tasks = same_tasks(evaluations, shared=shared)
    first, *others = evaluations
    parts = sorted(part_names(row for evaluation in evaluations for row in evaluation.rows))
    comparisons = [_compare(first, other, tasks, parts) for other in others]
    for metric in METRICS:
        _adjust([comparison[metric] for comparison in comparisons])
    for part in parts:
        _adjust([comparison["parts"][part] for comparison in comparisons])
    return {
        "schema_version": SCHEMA_VERSION,
        "env": first.panel.env,
        "panels": [{"id": e.panel.id, "hash": e.panel.hash, "n_tasks": len(e.panel)} for e in evaluations],
        "n_tasks": len(tasks),
        "shared": any(e.panel.hash != first.panel.hash for e in others),
        "notes": [*env_notes(evaluations), *_notes(evaluations)],
        "policies": [_policy(evaluation, tasks, parts) for evaluation in evaluations],
        "comparisons": comparisons,
    }


def _adjust(tests: Sequence[dict[str, Any]]) -> None:
    """Holm's adjustment of the p-values of one metric in several comparisons."""
    adjusted = holm([_nan(test["p"]) for test in tests])
    for test, p in zip(tests, adjusted, strict=True):
        test["p_holm"] = _number_or_none(p)


def _policy(evaluation: Evaluated, tasks: Mapping[str, str], parts: Sequence[str]) -> dict[str, Any]:
    """Figures of one evaluation on the tasks that are compared."""
    rows = [row for row in evaluation.rows if row["content"] in tasks]
    values = {metric: values_over(rows, metric, tasks) for metric in METRICS}
    figures: dict[str, Any] = {
        metric: _interval(mean_interval(of, proportion=metric != "return" or is_share(of)))
        for metric, of in values.items()
    }
    earned = {part: part_values(rows, part, tasks) for part in parts}
    figures["parts"] = {part: _interval(mean_interval(of, proportion=is_share(of))) for part, of in earned.items()}
    settings = {name: evaluation.summary.get(name) for name in (*_SAID, "experience", KEY)}
    errors = sum(row["ending"] in _ERRORS for row in rows)
    folder, policy = str(evaluation.folder), evaluation.summary["policy"]
    counts = {"n_episodes": len(rows), "errors": errors, **replies_of(scored_rows(rows))}
    return {"folder": folder, "policy": policy, **settings, **counts, **figures}


def _compare(first: Evaluated, other: Evaluated, tasks: Mapping[str, str], parts: Sequence[str]) -> dict[str, Any]:
    comparison: dict[str, Any] = {"folder": str(other.folder), "against": str(first.folder), "parts": {}}
    scored = {}
    for metric in METRICS:
        scored[metric] = a, b = _both(*(values_over(side.rows, metric, tasks) for side in (first, other)))
        comparison[metric] = _paired(a, b, proportion=metric != "return" or is_share(a, b))
    for part in parts:
        a, b = _both(*(part_values(side.rows, part, tasks) for side in (first, other)))
        comparison["parts"][part] = _paired(a, b, proportion=is_share(a, b))
    worst = "success" if scored["success"][0] else "return"
    a, b = scored[worst]
    return {
        **comparison,
        "regressions": [
            {"task": task, "before": _mean(a[task]), "after": _mean(b[task])}
            for task in sorted(a, key=lambda task: (_mean(b[task]) - _mean(a[task]), task))
            if _mean(b[task]) < _mean(a[task]) - 1e-9
        ],
        "regressions_by": worst,
        "env_differences": env_differences(first, other),
        "left_out": [task for task in tasks.values() if task not in a],
    }


def _both(a: Values, b: Values) -> tuple[Values, Values]:
    """Of each side the tasks that both have."""
    both = sorted(a.keys() & b.keys())
    return {task: a[task] for task in both}, {task: b[task] for task in both}


def _paired(a: Values, b: Values, *, proportion: bool) -> dict[str, Any]:
    """B minus A, over tasks that both have."""
    difference = paired_difference(b, a, proportion=proportion)
    differences = [_mean(b[task]) - _mean(a[task]) for task in a]
    wins, losses = sum(d > 1e-9 for d in differences), sum(d < -1e-9 for d in differences)
    return {
        "difference": _number_or_none(difference.mean),
        "ci_low": _number_or_none(difference.low),
        "ci_high": _number_or_none(difference.high),
        "p": _number_or_none(sign_flip_p(a, b)),
        "detectable": _number_or_none(detectable_difference(a, b)),
        "n_tasks": difference.n_tasks,
        "wins": wins,
        "losses": losses,
        "ties": len(differences) - wins - losses,
    }


def env_differences(first: Evaluated, other: Evaluated) -> list[str] | None:
    """Words for each fact in which the environments of two evaluations differ; None where one is unknown."""
    if first.env_identity is None or other.env_identity is None:
        return None
    return differences(first.env_identity, other.env_identity)


def env_notes(evaluations: Sequence[Evaluated]) -> list[str]:
    """Lines for the evaluations whose environment is another one than the first's, or unknown."""
    first, *others = evaluations
    notes = [
        f"the environments of {first.folder} and {other.folder} differ: {listed(changes)}"
        for other in others
        if (changes := env_differences(first, other))
    ]
    if unknown := [str(one.folder) for one in evaluations if one.env_identity is None]:
        notes.append(f"environment identity unknown, so that it may be another one: {', '.join(unknown)}")
    return notes


def _notes(evaluations: Sequence[Evaluated]) -> list[str]:
    """Differences between the evaluations besides their policies."""
    chosen = (selection_remark(evaluation.panel.facts) for evaluation in evaluations)
    notes = list(dict.fromkeys(filter(None, chosen)))
    if any(is_limited(evaluation.summary) for evaluation in evaluations):
        notes.append(
            "replies that were possible: " + ", ".join(_possible(evaluation.summary) for evaluation in evaluations)
        )
    experiences = [_experience(evaluation.summary) for evaluation in evaluations]
    if len(set(experiences)) > 1:
        notes.append(f"experience differs: {', '.join(experiences)}")
    for name in _SAID:
        values = [_of_all_roles(evaluation.summary, name) for evaluation in evaluations]
        reported = [value for value in values if value is not None]
        if any(value != reported[0] for value in reported[1:]):
            notes.append(f"{name} differs: " + ", ".join("–" if v is None else json.dumps(v) for v in values))
    return notes


def _experience(summary: Mapping[str, Any]) -> str:
    """The experience that a policy was shown, as notes name it."""
    facts = summary.get("experience")
    if facts is None:
        return "none"
    by_hand = ", by hand" if facts.get("by_hand") else ""
    return f"{facts['hash'][:8]} (version {facts['version']}{by_hand})"


def _of_all_roles(summary: Mapping[str, Any], name: str) -> Any:
    """A setting; of a policy in several roles that of each role, where it has one."""
    roles: Mapping[str, Mapping[str, Any]] = summary.get("roles", {}) if summary.get(name) is None else {}
    own = {role: settings[name] for role, settings in roles.items() if settings.get(name) is not None}
    return own or summary.get(name)


def _possible(summary: Mapping[str, Any]) -> str:
    if is_limited(summary):
        return "admissible commands only"
    return "–" if summary.get("agent") is None else "any"


def _interval(interval: Interval) -> dict[str, Any]:
    ends = {
        "mean": _number_or_none(interval.mean),
        "ci_low": _number_or_none(interval.low),
        "ci_high": _number_or_none(interval.high),
    }
    return {**ends, "n_tasks": interval.n_tasks, "n_episodes": interval.n_episodes}


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _number_or_none(value: float) -> float | None:
    return None if math.isnan(value) else value


def _nan(value: float | None) -> float:
    return math.nan if value is None else value
