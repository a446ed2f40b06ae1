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
        figures: name -> what ``measured`` returned; ``before`` and ``after`` are among them.
        facts: environment, device, seed and the like.
    """
    before, after = figures["before"]["by_task"], figures["after"]["by_task"]
    shared = [task for task in before if task in after]
    was, now = ({task: of[task] for task in shared} for of in (before, after))
    difference = paired_difference(now, was, proportion=True)
    shown = {name: {k: v for k, v in measures.items() if k != "by_task"} for name, measures in figures.items()}
    ends = {"success": difference.mean, "ci_low": difference.low, "ci_high": difference.high}
    shown["difference"] = {name: None if math.isnan(value) else value for name, value in ends.items()}
    return {**facts, "panel": panel, **shown}
