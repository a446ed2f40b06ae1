"""The learning curve of a run as a picture."""

from pathlib import Path
from typing import Any

from manyturn.trainers.record.run_folder import read_metrics

_BLUE, _GREY, _GREEN, _RED = "#2563eb", "#9ca3af", "#059669", "#dc2626"


def draw_curve(run: Path, summary: dict[str, Any]) -> Path:
    """Draw ``run/curve.png``: success of the rollouts step by step, held-out success before and after, and the bounds.

    Args:
        run: the run's folder.
        summary: what ``summarise_run`` returned.
    """
    from matplotlib.figure import Figure  # without pyplot, which has windows, and settings that are the caller's

    lines = [line for line in read_metrics(run) if line["phase"] == "train" and line["success"] is not None]
    steps = [line["step"] for line in lines]
    figure = Figure(figsize=(7.2, 4.2), layout="constrained")
    axes = figure.subplots()
    axes.plot(steps, [line["success"] for line in lines], color=_BLUE, alpha=0.35, lw=1.2, label="training episodes")
    axes.plot(steps, _smooth([line["success"] for line in lines]), color=_BLUE, lw=2.2, label="running mean of 5 steps")
    last = steps[-1] if steps else 0
    for suffix, face, label in (
        ("", "black", "held-out tasks, 95 % interval"),
        ("_greedy", "white", "the same, greedy"),
    ):
        for name, place in (("before", 0), ("after", last)):
            if held := summary.get(name + suffix):
                _point(axes, place, held, face, label if name == "after" else None)
    for name, colour in (("expert", _GREEN), ("random", _RED)):
        if summary.get(name):
            axes.axhline(summary[name]["success"], color=colour, lw=1, ls="--", label=f"{name}, held-out tasks")
    axes.set(xlabel="reinforcement-learning step", ylabel="success", ylim=(-0.02, 1.04))
    axes.set_title(f"{summary['env']}, seed {summary['seed']}, {summary['device']}", fontsize=11)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color=_GREY, alpha=0.3)
    axes.legend(frameon=False, fontsize=8.5, loc="lower right", bbox_to_anchor=(1, 0.18))
    path = run / "curve.png"
    figure.savefig(path, dpi=150)
    return path


def _point(axes: Any, step: int, held: dict[str, Any], face: str, label: str | None) -> None:
    """Held-out success with its interval; sampled is filled, greedy is hollow."""
    reach = None
    if held["ci_low"] is not None:
        reach = [[held["success"] - held["ci_low"]], [held["ci_high"] - held["success"]]]
    style = {"fmt": "o", "color": "black", "markerfacecolor": face, "capsize": 4, "zorder": 3}
    axes.errorbar([step], [held["success"]], reach, label=label, **style)


def _smooth(values: list[float], width: int = 5) -> list[float]:
    return [sum(values[max(0, i - width + 1) : i + 1]) / (i + 1 - max(0, i - width + 1)) for i in range(len(values))]
