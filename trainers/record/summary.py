"""Results of a run on held-out tasks: before, after, the difference, ceiling and floor."""

import math
from typing import Any

from manyturn.agents.evaluation.evaluate import Evaluation
from manyturn.agents.evaluation.remarks import remarks
from manyturn.agents.evaluation.statistics import paired_difference
from manyturn.agents.evaluation.summary import values_by_task


def measured(evaluation: Evaluation) -> dict[str, Any]:
    """The figures of an evaluation that a run's summary needs.

    Success with its interval, the mean return, the shares of invalid and of cut replies, what else the environment
    measured, remarks on these figures, and the successes of each task.
    """
    summary = evaluation.summary
    success, measures = summary["success"], summary["measures"]
    return {
        "success": success["mean"],
        "ci_low": success["ci_low"],
        "ci_high": success["ci_high"],
        "return": summary["return"]["mean"],
        "invalid": summary["invalid_action_rate"],
        "cut": summary["cut_reply_rate"],
        **({"measures": {name: mean["mean"] for name, mean in measures.items()}} if measures else {}),
        "parts": {name: mean["mean"] for name, mean in summary["parts"].items()},
        "remarks": remarks(summary),
        "by_task": values_by_task(evaluation.episodes, "success"),
    }


def summarise_run(panel: dict[str, Any], figures: dict[str, dict[str, Any]], facts: dict[str, Any]) -> dict[str, Any]:
    """The run's summary, as plain values.

    Args:
        panel: id, hash and size of the panel that all figures are from.
        figures: name -> what ``measured`` returned; ``before`` and ``after`` are among them, and perhaps
            ``before_greedy`` and ``after_greedy``.
        facts: environment, device, seed and the like.
    """
    shown = {name: {k: v for k, v in measures.items() if k != "by_task"} for name, measures in figures.items()}
    for suffix in ("", "_greedy"):
        if f"before{suffix}" in figures:
            shown[f"difference{suffix}"] = _difference(figures[f"before{suffix}"], figures[f"after{suffix}"])
    return {**facts, "panel": panel, **shown}


def _difference(before: dict[str, Any], after: dict[str, Any]) -> dict[str, float | None]:
    """Success after less success before, paired by task, with its interval; None where nothing can be compared."""
    shared = [task for task in before["by_task"] if task in after["by_task"]]
    was, now = ({task: figures["by_task"][task] for task in shared} for figures in (before, after))
    difference = paired_difference(now, was, proportion=True)
    ends = {"success": difference.mean, "ci_low": difference.low, "ci_high": difference.high}
    return {name: None if math.isnan(value) else value for name, value in ends.items()}
