"""Training gain of methods of credit over a grid of learning rates, and its relation to the audit of credit.

    nice -n 15 python -m benchmarks.credit.rate_grid RUN-FOLDER [--minutes 60]
    python -m benchmarks.credit.rate_grid RUN-FOLDER --worlds repeated     a process of its own for some worlds
    python -m benchmarks.credit.rate_grid --table                          tables and relation from what is there

A cell is one world, method, rate and seed: six steps of 128 episodes from the warm-up that all cells of a world and a
seed share. Methods differ in their advantage only, and in what it needs: forks in their shape of rollouts, ``turn_gae``
and ``dual_gae`` in their critics. The critic of ``dual_gae`` learns from 256 more episodes beforehand. Methods that
change rewards or the objective have rows of their own in some worlds: ``gra`` and ``epo`` with GRPO's advantage,
``spa`` with that of ``turn_gae``. Each is measured sampled and greedy on held-out tasks. ``rate_grid.toml`` says what
is expected.

The rate of a method in a world is chosen on all seeds but one, by the mean success during training, the smaller of
equal ones; that one seed is measured, and each takes its turn. So no seed chooses its own rate. A cell that ends 0.05
below its warm-up is ruined. The same command resumes; a cell's result depends on nothing but itself.
"""

import argparse
import asyncio
import json
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import rankdata, t

from benchmarks.credit.settings import COMMON, EPISODES, WORLDS
from benchmarks.kit.comparison_run import Line, Start, config_changes, finish, run_cell, stored_line
from benchmarks.kit.provenance import RESULTS, origin, write
from benchmarks.kit.table import table
from manyturn.recipes import load_recipe
from manyturn.recipes.stack import stacked
from manyturn.trainers.recipe.config import RunConfig, configure
from manyturn.trainers.record.run_folder import read_metrics

OUT = RESULTS / "rate_grid.json"
PLAN = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
STEPS = 6
RUIN = 0.05
BOOTSTRAPS = 2000
RECIPES = {
    "gigpo": "gigpo",
    "hgpo": "hgpo",
    "graphgpo": "graphgpo",
    "g2po": "g2po",
    "turn_gae": "turn-ppo",
    "dual_gae": "verlog",
}
# Over what the relation is computed: as planned, then exploratory.
CHOICES = (
    ("all", tuple(PLAN["worlds"]), ""),
    ("without `forks`", tuple(PLAN["worlds"]), "forks"),
    ("without tempting", ("repeated", "decisive"), ""),
    ("without both", ("repeated", "decisive"), "forks"),
)
BASE: dict[str, Any] = {
    "credit": {"advantage": {"name": "grpo"}},
    "objective": {"name": "clip", "low": 0.2, "high": 0.2, "dual": "off", "aggregation": "token-mean"},
    "learner": {"lr_schedule": "constant"},
    "evaluation": {"limit": 100, "repeats": 1, "greedy": True, "every": 0},
}


class Cell(NamedTuple):
    """One training run; ``factor`` multiplies the world's own learning rate."""

    world: str
    row: str
    factor: float
    seed: int


def rows_of(world: str) -> list[str]:
    """Rows of a world: those of all worlds, then those of methods that change rewards or the objective."""
    return [*PLAN["rows"], *(row for row, layer in PLAN["stages"].items() if world in layer["worlds"])]


def cells() -> Iterator[Cell]:
    """Cells in the order in which they are run: seed by seed, so that a part of them is balanced."""
    for seed, world, factor in product(*(PLAN[name] for name in ("seeds", "worlds", "factors"))):
        for row in rows_of(world):
            yield Cell(world, row, factor, seed)


def method_layer(row: str) -> dict[str, Any]:
    """The settings of a recipe that make up its method: the advantage, and what that needs."""
    if row == "grpo":
        return {}
    if row in PLAN["stages"]:
        stage = PLAN["stages"][row]
        return stacked([method_layer(stage["advantage"]), stage["settings"]])
    if row == "forks":
        recipe = load_recipe("bpo")
        return {"credit": {"advantage": recipe["credit"]["advantage"]}, "rollout": recipe["rollout"]}
    recipe = load_recipe(RECIPES[row])
    critic = {"value": recipe["value"]} if "value" in recipe else {}
    return {"credit": {"advantage": recipe["credit"]["advantage"]}, **critic}


def common_settings(world: str, seed: int) -> dict[str, Any]:
    return stacked([COMMON, WORLDS[world], BASE, {"seed": seed}])


def config_of(cell: Cell) -> RunConfig:
    """The configuration of a cell."""
    recipe = stacked([common_settings(cell.world, cell.seed), method_layer(cell.row)])
    tasks = EPISODES // recipe["rollout"]["group"]
    settled = {"steps": STEPS, "checkpoint_every": STEPS, "rollout": {"tasks": tasks}}
    return configure(recipe, settled, {"learner": {"lr": recipe["learner"]["lr"] * cell.factor}})


def warmup_of(world: str, seed: int) -> RunConfig:
    """The run from whose end all cells of a world and a seed begin."""
    return configure(common_settings(world, seed), {"steps": 0})


def figures(folder: Path) -> dict[str, Any]:
    """Success before and after, sampled and greedy, and what training took."""
    summary = json.loads((folder / "summary.json").read_text())
    steps = [line for line in read_metrics(folder) if line["phase"] == "train"]
    names = ("before", "before_greedy", "after", "after_greedy")
    tokens = sum(line["trained_tokens"] for line in steps)
    return {
        **{name: summary[name]["success"] for name in names},
        "training": [round(line["success"], 4) for line in steps],
        "trained_tokens": tokens,
        "episodes": summary["played"]["episodes"],
    }


def run(root: Path, worlds: Sequence[str], seconds: float) -> None:
    """Run the cells of these worlds that are missing, until the time is over."""
    end = time.monotonic() + seconds
    for cell in cells():
        if cell.world in worlds and time.monotonic() < end:
            stored_line(line_file(root, cell), partial(line_of, root, cell))


def line_of(root: Path, cell: Cell) -> Line:
    """The line of a cell, which is run."""
    start = Start(warmup_of(cell.world, cell.seed), root / cell.world / f"seed-{cell.seed}")
    start.folder.parent.mkdir(parents=True, exist_ok=True)
    asyncio.run(finish(*start))
    config = config_of(cell)
    line = {**cell._asdict(), "lr": config.learner.lr, **run_cell(start, config, root, figures)}
    print(f"{cell}: {line['training'][0]:.2f} -> {line['training'][-1]:.2f}, {line['cpu_seconds']} s", flush=True)
    return {**line, "config": config_changes(config)}


def line_file(root: Path, cell: Cell) -> Path:
    return root / "lines" / f"{cell.world}-{cell.row}-{cell.factor:g}-{cell.seed}.json"


def lines_of(root: Path) -> list[Line]:
    """Lines of the cells that were run, without their configurations."""
    files = [file for cell in cells() if (file := line_file(root, cell)).is_file()]
    return [{k: v for k, v in json.loads(file.read_text()).items() if k != "config"} for file in files]


class Gains(NamedTuple):
    """Of one method in one world, per seed: mean success during training, and after it, at the rate of the others."""

    training: np.ndarray
    after: np.ndarray
    greedy: np.ndarray


def cross_chosen(lines: Sequence[Mapping[str, Any]], world: str, row: str, seeds: Sequence[int]) -> Gains:
    """Figures of each seed at the rate that the other seeds chose; arrays over seeds."""
    own = {(line["factor"], line["seed"]): line for line in lines if (line["world"], line["row"]) == (world, row)}
    area = {place: float(np.mean(line["training"])) for place, line in own.items()}
    picks = []
    for seed in seeds:
        means = {f: np.mean([area[f, other] for other in seeds if other != seed]) for f in PLAN["factors"]}
        best = max(PLAN["factors"], key=lambda factor: (means[factor], -factor))
        picks.append({**own[best, seed], "area": area[best, seed]})
    return Gains(*(np.array([pick[name] for pick in picks]) for name in ("area", "after", "after_greedy")))


def relation(audit: Mapping[str, Mapping[str, float]], gains: Mapping[str, Mapping[str, np.ndarray]]) -> dict[str, Any]:
    """Rank correlation, within worlds, of audit scores and training gains, with a bootstrap interval over seeds."""
    rng = np.random.default_rng(0)
    first = next(iter(gains.values()))
    seeds = len(next(iter(first.values())))

    def correlation(chosen: np.ndarray) -> float:
        pairs = []
        for world, by_row in gains.items():
            rows = [row for row in by_row if row in audit[world]]
            score = rankdata([audit[world][row] for row in rows])
            gain = rankdata([by_row[row][chosen].mean() for row in rows])
            pairs.append(np.stack([score - score.mean(), gain - gain.mean()]))
        x, y = np.concatenate(pairs, 1)
        norm = np.sqrt((x**2).sum() * (y**2).sum())
        return float((x * y).sum() / norm) if norm else float("nan")

    drawn = [correlation(rng.integers(seeds, size=seeds)) for _ in range(BOOTSTRAPS)]
    low, high = np.nanquantile(drawn, [0.025, 0.975])
    return {"mean": correlation(np.arange(seeds)), "ci_low": float(low), "ci_high": float(high)}


def complete_seeds(lines: Sequence[Mapping[str, Any]]) -> list[int]:
    """Seeds of which every cell was run."""
    done = {(line["world"], line["row"], line["factor"], line["seed"]) for line in lines}
    missing = {cell.seed for cell in cells() if cell not in done}
    return [seed for seed in PLAN["seeds"] if seed not in missing]


def results(lines: Sequence[Mapping[str, Any]], audit: Mapping[str, Mapping[str, float]]) -> dict[str, Any]:
    """Tables by world and method, and the relation of audit and gain."""
    seeds = complete_seeds(lines)
    worlds: dict[str, Any] = {}
    areas: dict[str, dict[str, np.ndarray]] = {}
    for world in PLAN["worlds"]:
        base = cross_chosen(lines, world, "grpo", seeds)
        worlds[world], areas[world] = {}, {}
        for row in rows_of(world):
            gains = cross_chosen(lines, world, row, seeds)
            own = [line for line in lines if (line["world"], line["row"]) == (world, row) and line["seed"] in seeds]
            by_rate = {f: [line for line in own if line["factor"] == f] for f in PLAN["factors"]}
            means = {f: float(np.mean([line["after"] for line in at])) for f, at in by_rate.items()}
            if row in PLAN["rows"]:
                areas[world][row] = gains.training - base.training
            worlds[world][row] = {
                "area": _interval(gains.training),
                "area_gain": _interval(gains.training - base.training),
                "after": _interval(gains.after),
                "after_greedy": _interval(gains.greedy),
                "after_by_rate": {f"{factor:g}": round(mean, 4) for factor, mean in means.items()},
                "working_rates": sum(mean >= max(means.values()) - RUIN for mean in means.values()),
                "ruined": sum(line["after"] < line["before"] - RUIN for line in own),
                "cells": len(own),
                "tokens": round(float(np.mean([line["trained_tokens"] for line in own]))),
                "cpu_seconds": round(float(np.mean([line["cpu_seconds"] for line in own])), 1),
                "audit": audit[world].get(row),
            }
    before = {name: float(np.mean([line[name] for line in lines])) for name in ("before", "before_greedy")}
    return {"seeds": seeds, "cells": len(lines), **before, "relation": relation(audit, areas), "worlds": worlds}


def _interval(values: np.ndarray) -> dict[str, float]:
    """Mean over seeds with a 95 % interval of Student's t."""
    half = float(t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0
    return {"mean": float(values.mean()), "ci_low": float(values.mean() - half), "ci_high": float(values.mean() + half)}


def audit_scores() -> dict[str, dict[str, float]]:
    """Correlation with the true effect of a turn, by world and method, from the committed audit."""
    worlds = json.loads((RESULTS / "credit_audit.json").read_text(encoding="utf-8"))["worlds"]
    return {
        name: {s["method"]: s["correlation"]["mean"] for s in world["methods"] if s["anchor"] == "environment"}
        for name, world in worlds.items()
    }


def page(result: Mapping[str, Any]) -> str:
    """Markdown tables of the result."""
    lines = []
    for world, rows in result["worlds"].items():
        warm = [line for line in result["lines"] if line["world"] == world]
        before = [f"{np.mean([line[name] for line in warm]):.3f}" for name in ("before", "before_greedy")]
        lines.append((world, "before", "-", "-", *before, *["-"] * 5))
        for row, one in rows.items():
            shown = [f"{one[name]['mean']:.3f}" for name in ("area", "after", "after_greedy")]
            gain = one["area_gain"]
            audit = "-" if one["audit"] is None else f"{one['audit']:.2f}"
            above = f"{gain['mean']:+.3f} [{gain['ci_low']:+.3f}, {gain['ci_high']:+.3f}]"
            rates = (f"{one['working_rates']}", f"{one['ruined']} of {one['cells']}")
            cost = (f"{one['tokens']:,}", f"{one['cpu_seconds']:.1f}")
            lines.append((world, f"`{row}`", audit, *shown, above, *rates, *cost))
    measured = ("audit", "area", "sampled", "greedy", "area above GRPO", "rates", "ruined")
    head = ("world", "method", *measured, "tokens", "CPU s")
    return f"{table(head, lines)}\n\n{relations(result)}"


def relations(result: Mapping[str, Any]) -> str:
    """Markdown table of the rank correlation: over everything, and without what trains on another budget or goal."""
    lines_by_choice = []
    for words, worlds, left_out in CHOICES:
        areas = {world: _area_gains(result, world, left_out) for world in worlds}
        link = relation({w: {r: one["audit"] for r, one in result["worlds"][w].items()} for w in worlds}, areas)
        lines_by_choice.append((words, f"{link['mean']:.2f} [{link['ci_low']:.2f}, {link['ci_high']:.2f}]"))
    return table(("worlds and methods", "rank correlation"), lines_by_choice)


def _area_gains(result: Mapping[str, Any], world: str, left_out: str) -> dict[str, np.ndarray]:
    lines, seeds = result["lines"], result["seeds"]
    base = cross_chosen(lines, world, "grpo", seeds).training
    rows = [row for row in PLAN["rows"] if row != left_out]
    return {row: cross_chosen(lines, world, row, seeds).training - base for row in rows}


def draw(result: Mapping[str, Any], path: Path) -> None:
    """A point for each world and method: its score in the audit, and its gain over GRPO with a 95 % interval."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(
        1, len(result["worlds"]), figsize=(3.6 * len(result["worlds"]), 3.8), layout="constrained", squeeze=False
    )
    for panel, (world, rows) in zip(panels[0], result["worlds"].items(), strict=True):
        panel.axhline(0, color="silver", linewidth=1)
        scored = {row: one for row, one in rows.items() if one["audit"] is not None}
        for marker, (row, one) in zip("osD^vP*X", scored.items(), strict=True):
            gain = one["area_gain"]
            error = [[gain["mean"] - gain["ci_low"]], [gain["ci_high"] - gain["mean"]]]
            panel.errorbar(one["audit"], gain["mean"], yerr=error, fmt=marker, elinewidth=1, label=row)
        panel.set_title(world)
        panel.set_xlabel("correlation in the audit")
    panels[0][0].set_ylabel("sampled success in training, over GRPO's")
    handles, labels = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=8)
    figure.savefig(path, dpi=130)
    pyplot.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--worlds", nargs="+", choices=PLAN["worlds"], default=PLAN["worlds"])
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--out", type=Path, default=OUT)
    args = parser.parse_args()
    if args.table:
        print(page(json.loads(args.out.read_text(encoding="utf-8"))))
        return
    if args.folder is None:
        parser.error("name a RUN-FOLDER")
    about = origin(args.out, ("torch", "transformers", "numpy"), run_folder=args.folder)
    root = args.folder.resolve() / about["commit"]
    run(root, args.worlds, args.minutes * 60)
    lines = lines_of(root)
    if len(complete_seeds(lines)) < len(PLAN["seeds"]):
        print(f"{len(lines)} cells so far; the same command continues")
        return
    result = results(lines, audit_scores())
    write(args.out, about, {"plan": PLAN, **result, "lines": lines})
    draw(result, args.out.with_suffix(".png"))


if __name__ == "__main__":
    main()
