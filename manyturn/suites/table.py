"""Table of a suite on the terminal: its contents, and results of policies next to floor and ceiling."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from manyturn.agents.evaluation.summary_table import close_table, count, ends_of, number
from manyturn.suites import results_folder
from manyturn.suites.result import FILE, Result, results_in
from manyturn.suites.suite import Suite
from manyturn.terminal.escape import visible

FLOOR, CEILING = "random", "expert"
"""Names of the policies whose results bound the others'."""


def bounds_of(suite: Suite, file: Path) -> dict[str, dict[str, Any]]:
    """The results of the random policy and of the expert, as far as they are among the suite's results."""
    results = results_in(results_folder(file), suite)
    return {name: values for name, values in results.items() if name in (FLOOR, CEILING)}


def show_results(results: Mapping[str, Result], console: Console) -> None:
    """Print a table for each policy, what was skipped, and where everything is."""
    for name, result in results.items():
        suite = result.suite
        bounds = bounds_of(suite, result.file)
        console.print(_table(f"{name} on {suite.name}", result.values, bounds))
        _say(console, _core_line(suite, result.values, bounds))
        _say_skipped(result.values["skipped"], console)
        for remark, panels in result.remarks.items():
            _say(console, f"{', '.join(panels)}: {remark}")
        _say(console, f"{result.out / FILE} has the figures; manyturn report {result.out}/PANEL shows every turn")


def show_suite(suite: Suite, console: Console) -> None:
    """Print the panels of a suite."""
    table = close_table(f"{suite.name}, hash {suite.hash[:8]}, frozen with manyturn {suite.frozen_with}")
    for column in ("panel", "environment", "arguments", "tasks", "needs"):
        table.add_column(column, justify="right" if column == "tasks" else "left", overflow="fold")
    for one in suite:
        args = ", ".join(f"{key}={value}" for key, value in one.panel.args.items())
        env = one.panel.env.removeprefix("manyturn/")
        split = "" if one.panel.split == "test" else f" {one.panel.split}"
        table.add_row(one.name, Text(env + split), Text(visible(args)), str(len(one.panel)), one.need)
    console.print(table)
    core = sum(len(one.panel) for one in suite.core)
    _say(
        console, f"{sum(len(one.panel) for one in suite)} tasks; core: {core} of {len(suite.core)} panels without needs"
    )


def _table(title: str, values: Mapping[str, Any], bounds: Mapping[str, Mapping[str, Any]]) -> Table:
    panels: Mapping[str, Mapping[str, Any]] = values["panels"]
    has_tokens = any(one["tokens"]["reply_total"] is not None for one in panels.values())
    paid = any(one["cost"] is not None for one in panels.values())
    failed = any(one["errors"] for one in panels.values())
    columns = ["success", "95 %", "floor", "ceiling", "turns", "invalid", *["tokens"] * has_tokens, *["cost"] * paid]
    table = close_table(title)
    table.add_column("panel", justify="left", overflow="fold")
    for column in (*columns, "s", *["errors"] * failed):
        table.add_column(column, justify="right", no_wrap=True)
    for name, one in panels.items():
        cells = [number(one["success"]["mean"], percent=True), ends_of(one["success"])]
        cells += [_bound(bounds, FLOOR, name), _bound(bounds, CEILING, name), number(one["turns"])]
        cells += [_whole(one["invalid_action_rate"])]
        cells += [f"{count(one['tokens']['prompt_total'])} + {count(one['tokens']['reply_total'])}"] * has_tokens
        cells += [number(one["cost"])] * paid + [number(one["seconds"]["wall"])] + [str(one["errors"])] * failed
        table.add_row(name, *cells)
    return table


def _bound(bounds: Mapping[str, Mapping[str, Any]], which: str, panel: str) -> str:
    bound = bounds.get(which, {}).get("panels", {}).get(panel)
    return _whole(None if bound is None else bound["success"]["mean"])


def _whole(share: float | None) -> str:
    return "–" if share is None else f"{share:.0%}"


def _core_line(suite: Suite, values: Mapping[str, Any], bounds: Mapping[str, Mapping[str, Any]]) -> str:
    totals, core = values["totals"], values["core"]
    spent = [f"{totals['episodes']} episodes", f"{(totals['seconds'] or 0) / 60:.1f} min"]
    if totals["reply_tokens"] is not None:
        spent.append(f"{count(totals['prompt_tokens'])} prompt and {count(totals['reply_tokens'])} reply tokens")
    if totals["cost"] is not None:
        spent.append(f"cost {totals['cost']:.4g}")
    if core is None:
        missing = [one.name for one in suite.core if one.name not in values["panels"]]
        head = f"core: unknown, since {len(missing)} of its {len(suite.core)} panels were not played"
    else:
        head = f"core: {number(core['mean'], percent=True)} ({ends_of(core)}) over {core['n_tasks']} tasks"
        present = [
            (word, bounds[name]["core"]) for word, name in (("floor", FLOOR), ("ceiling", CEILING)) if name in bounds
        ]
        head += "".join(f", {word} {number(one['mean'], percent=True)}" for word, one in present if one)
    return f"{head}; {', '.join(spent)}"


def _say_skipped(skipped: Mapping[str, str], console: Console) -> None:
    """Names of panels that were not played, together where the reason is the same."""
    by_reason: dict[str, list[str]] = {}
    for name, reason in skipped.items():
        by_reason.setdefault(reason, []).append(name)
    for reason, names in by_reason.items():
        _say(console, f"skipped {', '.join(names)}: {reason}")


def show_checked(suite: Suite, ready: Sequence[str], lacking: Mapping[str, str], console: Console) -> None:
    """Print that environments are as they were frozen, and which are not here."""
    count = len(ready) + len(lacking)
    _say(console, f"{suite.name}, hash {suite.hash}: {len(ready)} of {count} panels are as they were frozen")
    _say_skipped(lacking, console)


def _say(console: Console, text: str) -> None:
    console.print(visible(text, console.encoding), markup=False, highlight=False, soft_wrap=True)
