"""Costs of runs, as docs/costs.md, made from the committed results only.

    python -m benchmarks.runs.costs > docs/costs.md

A cell without a figure in a file says that it is not measured. A recipe is measured as soon as ``results/RECIPE.json``
has runs of it.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.kit.provenance import RESULTS
from benchmarks.kit.table import table
from manyturn.agents.evaluation.summary_table import count
from manyturn.recipes import load_recipe, whole_runs

UNKNOWN = "not measured"
_FOLDER = "../benchmarks/results"
HEAD = """# Time and memory of ready-made runs

This page is generated from the files under `benchmarks/results`: `python -m benchmarks.runs.costs > docs/costs.md`.
Ranges are over the runs in a file. Where no file has a figure, the cell says so; nothing is estimated. Recipes
without committed runs are not listed.
"""
RUNS = """## Ready-made runs

Minutes are those of a whole run on the clock, with warm-up and evaluations. Steps are those after the warm-up; episodes
and tokens are what was played and said in them. Memory is what the run's process took at most. Speeds are those of the
steps, by seconds of the processor: tokens of learning are those of the sequences that updates read. The last share is
what these tokens need in the decoder's linear layers, forward and backward, over what one core multiplies in the same
time; attention and the output head are not counted."""
COMPARED = """## Comparisons of methods

One run is one method with one seed in a world built for the comparison. Seconds are of the processor, with evaluations.
In `claims.json` the first run of a seed has the warm-up in them, in `rate_grid.json` none has. Tokens are those of
training episodes."""
REST = """## What is not here

- Memory of most training runs, and of any on a GPU.
- Anything on a GPU: [a GPU](gpu.md) says how to measure one.
- Calls of endpoints: an [evaluation](evaluation.md#what-the-figures-mean) counts their tokens and cost, and so does
  [the page of a suite's results](suite-v1.md)."""


def page() -> str:
    """The page."""
    measured = {name: runs for name in whole_runs() if (runs := _runs_of(name))[2]}
    rows = [_row(name, _envs(load_recipe(name)), *runs) for name, runs in measured.items()]
    head = (
        "recipe",
        "environment",
        "runs",
        "minutes",
        "warm-up updates",
        "steps",
        "episodes",
        "tokens",
        "memory",
        "episodes per s of play",
        "tokens per s of learning",
        "share of the matrix rate",
        "from",
    )
    compared = [row for file in ("claims.json", "rate_grid.json") if (row := _compared(file))]
    second = ("what", "runs", "processor seconds, median (range)", "tokens, median", "from")
    return "\n\n".join([HEAD.rstrip(), RUNS, table(head, rows), COMPARED, table(second, compared), REST]) + "\n"


def _envs(recipe: Mapping[str, Any]) -> str:
    """The environment of a recipe, or several."""
    return "`, `".join(env["id"] for env in recipe.get("envs", [recipe.get("env")]))


def _read(name: str) -> dict[str, Any] | None:
    file = RESULTS / name
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else None


def _runs_of(name: str) -> tuple[str, Mapping[str, Any], list[Mapping[str, Any]]]:
    """The file of a recipe, and the runs in it that are the recipe as it stands."""
    values = _read(f"{name}.json") or {}
    runs = [run for run in values.get("runs", ()) if run.get("variant", "gated") == "gated"]
    return f"{name}.json", values, runs


def _row(
    name: str, env: str, file: str, values: Mapping[str, Any], runs: Sequence[Mapping[str, Any]]
) -> tuple[str, ...]:
    played, speed = ([run.get(name, {}) for run in runs] for name in ("played", "speed"))
    return (
        name,
        f"`{env}`",
        str(len(runs)),
        _range([run["seconds"] / 60 for run in runs], "{:.1f}"),
        _range([run["warmup"]["updates"] for run in runs]),
        _range([run["steps"] for run in runs]),
        _range((figures.get("episodes") for figures in played), "{:,}"),
        _range((figures.get("tokens") for figures in played), count),
        _range((run.get("peak_memory_mb") for run in runs), "{:,.0f} MB"),
        _range((figures.get("episodes_per_play_second") for figures in speed), "{:.0f}"),
        _range((figures.get("tokens_per_learn_second") for figures in speed), count),
        _range((figures.get("learn_share_of_matrix_rate") for figures in speed), "{:.0%}"),
        f"[{file}]({_FOLDER}/{file}), commit {values['commit']}, {values['machine']}",
    )


def _range(values: Iterable[Any], form: str | Callable[[Any], str] = "{}") -> str:
    """The least and the most, or the one value that all have."""
    numbers = list(values)
    if any(value is None for value in numbers):
        return UNKNOWN
    shown = [form.format(value) if isinstance(form, str) else form(value) for value in (min(numbers), max(numbers))]
    return " to ".join(dict.fromkeys(shown))


def _compared(name: str) -> tuple[str, ...] | None:
    """The runs of a comparison."""
    file = RESULTS / name
    if not file.is_file():
        return None
    values = json.loads(file.read_text(encoding="utf-8"))
    runs = values["runs"] if "runs" in values else values["lines"]
    seconds = [run["cpu_seconds"] for run in runs]
    tokens = [run["played"]["tokens"] if "played" in run else run["trained_tokens"] for run in runs]
    spread = f"{median(seconds):.0f} ({min(seconds):.0f} to {max(seconds):.0f})"
    return (Path(name).stem, str(len(runs)), spread, count(median(tokens)), f"[{name}]({_FOLDER}/{name})")


if __name__ == "__main__":
    print(page(), end="")
