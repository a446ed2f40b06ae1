"""Table of a run's results, printed at its end and shown in a notebook."""

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from manyturn.terminal.escape import visible
from manyturn.trainers.record.env_changes import env_change_lines

_FIGURES = (
    "random",
    *("before", "before_greedy"),
    *("after", "after_greedy"),
    *("difference", "difference_greedy"),
    "expert",
)


def print_outcome(summary: Mapping[str, Any], console: Console) -> None:
    """A table of what a run reached, from its summary, and remarks on it."""
    for name, own in summary.get("envs", {}).items():
        console.print(_table(own, f"{name}: "))
    console.print(_table(summary))
    if (warmup := summary.get("warmup", {})).get("updates"):
        cost = f", {warmup['cpu_seconds'] / 60:.1f} CPU minutes" if "cpu_seconds" in warmup else ""
        say(
            f"before: after imitating {warmup['demonstrations']:,} demonstrations{cost}, before the first step", console
        )
    if (learned := summary.get("learned_steps")) is not None and learned < summary["steps"]:
        say(f"learned in {learned} of {summary['steps']} steps", console)
    for line in env_change_lines(summary.get("env_changes", ())):
        say(line, console)
    for name in ("after", "random"):
        for remark in summary[name]["remarks"]:
            say(f"{name}: {remark}", console)


def _table(summary: Mapping[str, Any], of: str = "") -> Table:
    """The figures of one environment, or of all together."""
    panel = summary["panel"]
    table = Table(title=f"{of}success on {panel['n_tasks']} held-out tasks ({panel['id']})", title_justify="left")
    for column in ("policy", "success", "95 % interval", "return", "invalid", "cut"):
        table.add_column(column)
    for name in _FIGURES:
        if name in summary:
            figures = summary[name]
            mean, low, high = (_number(figures[key]) for key in ("success", "ci_low", "ci_high"))
            earned, *shares = _number(figures.get("return")), _share(figures, "invalid"), _share(figures, "cut")
            table.add_row(name.replace("_", ", "), mean, f"{low} to {high}", earned, *shares)
    return table


def say(text: str, console: Console) -> None:
    """Print a line of unknown origin: no markup, and signs that would steer the terminal written out."""
    console.print(Text(visible(text)), soft_wrap=True)


def _share(figures: Mapping[str, Any], name: str) -> str:
    return "–" if figures.get(name) is None else f"{figures[name]:.0%}"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"
