"""Panels as files, policies against each other, training seeds: reads folders, prints tables, writes JSON."""

import json
import math
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from manyturn.agents.evaluation.notebook import as_html
from manyturn.agents.evaluation.paired_comparison import (
    CompareError,
    compare,
    env_notes,
    read_evaluation,
    same_tasks,
    values_over,
)
from manyturn.agents.evaluation.seed_intervals import FEWEST_RUNS, Spread, spread
from manyturn.agents.evaluation.summary_table import COST, close_table
from manyturn.envs.contract.atomic_files import replace_text
from manyturn.trainers.record.run_folder import read_config

_SHOWN_REGRESSIONS = 10
_SURE = 0.05  # p below which a 95 % interval should leave 0 out
_DISAGREE = ". Where p and the interval disagree about 0, believe p: with few tasks the interval is too short"
_FOLDED = ("", "run", "metric", "errors")  # columns that may take several lines
_NAMES = {"success": "success", "success_errors_as_failures": "… errors as failures", "return": "return"}


class Comparison(dict[str, Any]):
    """Result of a comparison as plain values, shown as tables in a notebook."""

    def show(self, console: Console | None = None) -> None:
        """Print the tables of ``manyturn compare``."""
        _print_comparison(self, console or Console())

    def _repr_html_(self) -> str:
        return as_html(self.show)


def compare_folders(*folders: str | PathLike[str], shared: bool = False) -> Comparison:
    """Compare evaluations with the first on the same tasks, as plain values; see ``paired_comparison.compare``.

    Args:
        folders: of evaluations, or of runs, whose evaluation is meant then.
        shared: compare over the tasks that all have, where panels differ.

    Raises:
        CompareError: there are fewer than two, or they are of different tasks.
    """
    return Comparison(compare([read_evaluation(Path(folder)) for folder in folders], shared=shared))


def compare_evaluations(
    paths: Sequence[Path], shared: bool = False, out: Path | None = None, console: Console | None = None
) -> dict[str, Any]:
    """Compare evaluations with the first, print tables, and write everything to a file.

    Args:
        paths: folders of evaluations or of runs.
        shared: compare over the tasks that all have, where panels differ.
        out: JSON file.
    """
    comparison = compare_folders(*paths, shared=shared)
    console = console or Console()
    comparison.show(console)
    _write(out, comparison, console)
    return comparison


def _print_comparison(results: Mapping[str, Any], console: Console) -> None:
    letters = [_letter(number) for number in range(len(results["policies"]))]
    panel = results["panels"][0]
    over = (
        f"{results['n_tasks']} tasks that all have" if results["shared"] else f"{panel['id']}, hash {panel['hash'][:8]}"
    )
    for letter, policy in zip(letters, results["policies"], strict=True):
        _say(console, f"{letter}  {policy['folder']}: {policy['policy']}")
    for note in results["notes"]:
        _say(console, f"note: {note}")
    _print_policies(results, letters, over, console)
    _print_differences(results, letters, console)
    for letter, comparison in zip(letters[1:], results["comparisons"], strict=True):
        _print_regressions(comparison, letter, console)


def _print_policies(comparison: Mapping[str, Any], letters: Sequence[str], over: str, console: Console) -> None:
    cut, paid = (any(share(policy) is not None for policy in comparison["policies"]) for share in (_cut, _cost))
    columns = ["success", "95 % interval", "return", "invalid", *["cut"] * cut, *["cost"] * paid, "episodes", "errors"]
    table = _table(f"on {over}", "", *columns)
    for letter, policy in zip(letters, comparison["policies"], strict=True):
        success, errors = policy["success"], f"{policy['errors']}"
        if policy["errors"]:
            errors += f" (success {_percent(policy['success_errors_as_failures']['mean'])} with them as failures)"
        returned = _plain(policy["return"]["mean"])
        ends = _ends(success, "{:.1%}")
        replies = [_percent(policy["invalid_action_rate"])]
        replies += [_percent(_cut(policy))] * cut + [_plain(_cost(policy))] * paid
        table.add_row(letter, _percent(success["mean"]), ends, returned, *replies, str(policy["n_episodes"]), errors)
    console.print(table)
    if paid:
        _say(console, COST)
    parts = comparison["policies"][0]["parts"]
    if len(parts) > 1:
        table = _table("reward parts", "", *parts)
        for letter, policy in zip(letters, comparison["policies"], strict=True):
            table.add_row(letter, *(_plain(policy["parts"][part]["mean"]) for part in parts))
        console.print(table)


def _cut(policy: Mapping[str, Any]) -> float | None:
    return policy["cut_reply_rate"]


def _cost(policy: Mapping[str, Any]) -> float | None:
    return policy["cost"]["total"]


def _print_differences(results: Mapping[str, Any], letters: Sequence[str], console: Console) -> None:
    many = len(results["comparisons"]) > 1
    heads = ["", "metric", "difference", "95 % interval", "p", *(["p,\nHolm"] if many else [])]
    table = _table("against A, paired by task", *heads, "won/\nlost/tied", "could have\nshown")
    with_errors = any(policy["errors"] for policy in results["policies"])
    rows: list[Mapping[str, Any]] = []
    for letter, comparison in zip(letters[1:], results["comparisons"], strict=True):
        parts = comparison["parts"] if len(comparison["parts"]) > 1 else {}
        shown = [(metric, name, comparison[metric]) for metric, name in _NAMES.items()]
        for metric, name, one in [*shown, *(("part", f"part {part}", of_part) for part, of_part in parts.items())]:
            if not one["n_tasks"] or (metric == "success_errors_as_failures" and not with_errors):
                continue
            form = "{:+.3g}" if metric in ("return", "part") else "{:+.1%}"
            cells = [_shown(one["difference"], form), _ends(one, form), _shown(one["p"], "{:.4f}")]
            rows.append(one)
            cells += [_shown(one["p_holm"], "{:.4f}")] if many else []
            counts = "/".join(str(one[key]) for key in ("wins", "losses", "ties"))
            table.add_row(letter, _text(name), *cells, counts, _shown(one["detectable"], form.replace("+", "")))
    console.print(table)
    _say(
        console,
        "p: sign-flip test of no difference. could have shown: the smallest true difference that this many tasks show "
        "in four of five times (2.8 standard errors)" + _DISAGREE * any(map(_disagrees, rows)),
    )


def _disagrees(one: Mapping[str, Any]) -> bool:
    """True if an interval leaves 0 out and p sees no difference, or the other way round."""
    low, high, p = one["ci_low"], one["ci_high"], one["p"]
    return None not in (low, high, p) and (low > 0 or high < 0) != (p < _SURE)


def _print_regressions(comparison: Mapping[str, Any], letter: str, console: Console) -> None:
    worse, left_out = comparison["regressions"], comparison["left_out"]
    if worse:
        shown = worse[:_SHOWN_REGRESSIONS]
        more = f", the worst {len(shown)}" if len(worse) > len(shown) else ""
        _say(console, f"{letter} is worse than A on {len(worse)} tasks{more} ({comparison['regressions_by']}):")
        for task in shown:
            _say(console, f"  {task['task']}  {_plain(task['before'])} → {_plain(task['after'])}")
    if left_out:
        _say(console, f"{letter}: {len(left_out)} tasks left out, on which one side has nothing but errors or no score")


def compare_seeds(paths: Sequence[Path], out: Path | None = None, console: Console | None = None) -> dict[str, Any]:
    """Print how far runs that differ in their training seed are apart, and write it to a file.

    Args:
        paths: folders of runs, or of evaluations of runs, on one panel.
        out: JSON file.
    """
    if len({path.resolve() for path in paths}) < max(2, len(paths)):
        raise CompareError("name two runs at least, each once")
    console = console or Console()
    evaluations = [read_evaluation(path) for path in paths]
    configs = [_run_config(path) for path in paths]
    seeds, notes = _seeds(paths, configs)
    notes += env_notes(evaluations)
    tasks = same_tasks(evaluations)
    values = [values_over(evaluation.rows, "success", tasks) for evaluation in evaluations]
    both = [task for task in tasks.values() if all(task in of_run for of_run in values)]
    if not both:
        raise CompareError("there is no task for which all runs record success")
    if len(both) < len(tasks):
        notes.append(f"{len(tasks) - len(both)} tasks left out, on which a run has nothing but errors or no score")
    rows = [row for row in evaluations[0].rows if row["difficulty"] is not None]
    strata = {tasks[row["content"]]: row["difficulty"] for row in rows}
    over = spread([{task: of_run[task] for task in both} for of_run in values], strata)
    if over.n_runs < FEWEST_RUNS:
        notes.append(f"{over.n_runs} runs: no interval below {FEWEST_RUNS} seeds")
    result = {
        "schema_version": 1,
        "panel": evaluations[0].summary["panel"],
        "notes": notes,
        "runs": [
            {"folder": str(e.folder), "seed": seed, "policy": e.summary["policy"], "success": e.summary["success"]}
            for e, seed in zip(evaluations, seeds, strict=True)
        ],
        "spread": {k: None if isinstance(v, float) and math.isnan(v) else v for k, v in over._asdict().items()},
    }
    _print_seeds(result, over, console)
    _write(out, result, console)
    return result


def _print_seeds(result: Mapping[str, Any], over: Spread, console: Console) -> None:
    table = _table(f"success on {result['panel']['id']} by training seed", "run", "seed", "success", "95 % interval")
    for run in result["runs"]:
        seed = "unknown" if run["seed"] is None else str(run["seed"])
        success = run["success"]
        table.add_row(_text(run["folder"]), seed, _percent(success["mean"]), _ends(success, "{:.1%}"))
    table.add_section()
    ends = "none" if math.isnan(over.low) else f"{over.low:.1%} to {over.high:.1%}"
    table.add_row("interquartile mean", f"{over.n_runs} runs", f"{over.iqm:.1%}", ends)
    table.add_row("lowest, highest", "", f"{over.lowest:.1%}, {over.highest:.1%}", "")
    console.print(table)
    for note in result["notes"]:
        _say(console, f"note: {note}")


def _run_config(path: Path) -> dict[str, Any] | None:
    """The configuration of the run that a folder, or an evaluation in it, belongs to; flat, keys with dots."""
    run = path if (path / "config.toml").is_file() else path.resolve().parent
    if not (run / "config.toml").is_file() or (run != path and path.name != "evaluation"):
        return None
    flat: dict[str, Any] = {}

    def flatten(prefix: str, value: Any) -> None:
        if isinstance(value, dict):
            for key, inner in value.items():
                flatten(f"{prefix}.{key}" if prefix else key, inner)
        else:
            flat[prefix] = value

    flatten("", read_config(run).model_dump(mode="json"))
    return flat


def _seeds(paths: Sequence[Path], configs: Sequence[dict[str, Any] | None]) -> tuple[list[int | None], list[str]]:
    """The training seeds, and in what else the runs differ; raises CompareError if one run comes twice."""
    seeds = [None if config is None else config["seed"] for config in configs]
    present = [config for config in configs if config is not None]
    keys = sorted({key for config in present for key in config} - {"seed"})
    odd = [key for key in keys if any(config.get(key) != present[0].get(key) for config in present[1:])]
    path_of = {seed: path for seed, path in zip(seeds, paths, strict=True) if seed is not None}
    if not odd and len(path_of) < len(present):
        twice = next(seed for seed in path_of if seeds.count(seed) > 1)
        raise CompareError(f"two of the runs have the training seed {twice} and one configuration: they are one run")
    notes = [f"the runs differ in more than their seed: {', '.join(odd)}"] if odd else []
    if len(present) < len(configs):
        notes.append("where the seed is unknown, the folder is no run's, and nothing says that it was trained apart")
    return seeds, notes


def _say(console: Console, text: str) -> None:
    console.print(_text(text), soft_wrap=True)


def _text(text: str) -> Text:
    """Text of unknown origin: no markup, and signs that would steer the terminal written out."""
    return Text("".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in text))


def _table(title: str, *columns: str) -> Table:
    table = close_table(title)
    for number, column in enumerate(columns):
        left = number == 0 or column == "metric"
        # A head that is cut in two is another word: episode, and an s below.
        whole = column not in _FOLDED
        least = len("success") if column == "metric" else None
        table.add_column(column, justify="left" if left else "right", overflow="fold", no_wrap=whole, min_width=least)
    return table


def _letter(number: int) -> str:
    return (_letter(number // 26 - 1) if number >= 26 else "") + chr(ord("A") + number % 26)


def _shown(value: float | None, form: str) -> str:
    return "–" if value is None else form.format(value)


def _percent(value: float | None) -> str:
    return _shown(value, "{:.1%}")


def _plain(value: float | None) -> str:
    return _shown(value, "{:.3g}")


def _ends(interval: Mapping[str, Any], form: str) -> str:
    low, high = interval["ci_low"], interval["ci_high"]
    return "unknown" if low is None or high is None else f"{form.format(low)} to {form.format(high)}"


def _write(out: Path | None, comparison: Mapping[str, Any], console: Console) -> None:
    if out is not None:
        replace_text(out, json.dumps(comparison, indent=1, allow_nan=False) + "\n")
        _say(console, f"written to {out}")
