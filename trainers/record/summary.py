"""Results of a run on held-out tasks: before, after, the difference, ceiling and floor."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from manyturn.agents.evaluation.evaluate import Evaluation
from manyturn.agents.evaluation.remarks import remarks
from manyturn.agents.evaluation.statistics import paired_difference
from manyturn.agents.evaluation.summary import ABOUT, summarise, values_by_task
from manyturn.agents.records.episode_rows import Row
from manyturn.envs.contract.random_keys import digest
from manyturn.envs.contract.tasks.env_identity import KEY


def measured(evaluations: Mapping[str, Evaluation]) -> dict[str, Any]:
    """The figures of an evaluation that a run's summary needs.

    Success with its interval, the mean return, the mean number of turns, the shares of invalid and of cut replies, what
    else the environment measured, remarks on these figures, and the successes of each task. Of several environments it
    is all that together, each task counting once, and ``envs`` has the same of each.

    Args:
        evaluations: name of each environment -> its evaluation.
    """
    by_env = {name: _measured(one.summary, one.episodes) for name, one in evaluations.items()}
    if len(by_env) == 1:
        return next(iter(by_env.values()))
    rows = [{**row, "task": f"{name}/{row['task']}"} for name, one in evaluations.items() for row in one.episodes]
    about = {key: value for key, value in next(iter(evaluations.values())).summary.items() if key in ABOUT}
    together = _measured(summarise(rows, about), rows)
    lines = [f"{name}: {remark}" for name, figures in by_env.items() for remark in figures["remarks"]]
    return {**together, "remarks": lines, "envs": by_env}


def _measured(summary: Mapping[str, Any], episodes: Sequence[Row]) -> dict[str, Any]:
    success, measures = summary["success"], summary["measures"]
    return {
        "success": success["mean"],
        "ci_low": success["ci_low"],
        "ci_high": success["ci_high"],
        "return": summary["return"]["mean"],
        "turns": summary["turns"]["mean"],
        "invalid": summary["invalid_action_rate"],
        "cut": summary["cut_reply_rate"],
        **({"measures": {name: mean["mean"] for name, mean in measures.items()}} if measures else {}),
        "parts": {name: mean["mean"] for name, mean in summary["parts"].items()},
        "remarks": remarks(summary),
        "by_task": values_by_task(episodes, "success"),
    }


def summarise_run(
    panels: Mapping[str, dict[str, Any]], figures: Mapping[str, dict[str, Any]], facts: dict[str, Any]
) -> dict[str, Any]:
    """The run's summary, as plain values.

    Args:
        panels: name of each environment -> id, hash and size of the panel that its figures are from.
        figures: name -> what ``measured`` returned; ``before`` and ``after`` are among them, and perhaps
            ``before_greedy`` and ``after_greedy``.
        facts: environment, device, seed and the like; of several environments ``envs`` has what belongs to each.
    """
    if len(panels) == 1:
        return {**facts, "panel": next(iter(panels.values())), **_shown(figures)}
    envs = {
        name: {
            **facts["envs"][name],
            KEY: facts[KEY]["members"][name],
            "panel": panel,
            **_shown({figure: measures["envs"][name] for figure, measures in figures.items()}),
        }
        for name, panel in panels.items()
    }
    tasks = sum(panel["n_tasks"] for panel in panels.values())
    names = " + ".join(f"{name}/{panel['n_tasks']}" for name, panel in panels.items())
    together = {"id": names, "hash": digest("panels", [one["hash"] for one in panels.values()]), "n_tasks": tasks}
    return {**facts, "envs": envs, "panel": together, **_shown(figures)}


def _shown(figures: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """The figures and differences that the summary has of one environment, or of all together."""
    hidden = ("by_task", "envs")
    shown = {name: {k: v for k, v in measures.items() if k not in hidden} for name, measures in figures.items()}
    for suffix in ("", "_greedy"):
        if f"before{suffix}" in figures:
            shown[f"difference{suffix}"] = _difference(figures[f"before{suffix}"], figures[f"after{suffix}"])
    return shown


def _difference(before: dict[str, Any], after: dict[str, Any]) -> dict[str, float | None]:
    """Success after less success before, paired by task, with its interval; None where nothing can be compared."""
    shared = [task for task in before["by_task"] if task in after["by_task"]]
    was, now = ({task: figures["by_task"][task] for task in shared} for figures in (before, after))
    difference = paired_difference(now, was, proportion=True)
    ends = {"success": difference.mean, "ci_low": difference.low, "ci_high": difference.high}
    return {name: None if math.isnan(value) else value for name, value in ends.items()}
