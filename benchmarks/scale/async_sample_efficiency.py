"""Learning per episode in asynchronous order, next to synchronous order, on the maze.

    nice -n 10 python -m benchmarks.scale.async_sample_efficiency RUN-FOLDER              eight steps, seven minutes
    nice -n 10 python -m benchmarks.scale.async_sample_efficiency RUN-FOLDER --run long   forty steps, 25 minutes
    python -m benchmarks.scale.async_sample_efficiency RUN-FOLDER --toy --out toy.json

The recipe is ``quickstart``, shortened. ``async_sample_efficiency.toml`` states what is expected of each. The same
command resumes. A run in asynchronous order draws tokens that depend on how long everything takes: its figures are not
repeated to the bit.
"""

import argparse
import asyncio
import json
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

from transformers.utils import logging as transformers_logging

from benchmarks.kit.comparison_run import Start, finish, run_cell, stored_line
from benchmarks.kit.provenance import RESULTS, origin, write
from manyturn.agents.evaluation.statistics import paired_difference
from manyturn.recipes import load_recipe
from manyturn.trainers.recipe.config import RunConfig, configure
from manyturn.trainers.record.run_folder import read_metrics

FILE = Path(__file__).resolve().with_name("async_sample_efficiency.toml")
OUTS = {"short": RESULTS / "order_learning.json", "long": RESULTS / "order_learning_long.json"}
ARMS = ("synchronous", "asynchronous")
_FEW = {"episodes": 20, "max_updates": 2, "check_every": 1, "check_episodes": 4, "must_succeed": False}
TOY = {"warmup": _FEW, "rollout": {"tasks": 2, "group": 2}}


class OrderPlan(NamedTuple):
    """A table of ``async_sample_efficiency.toml``."""

    date: str
    first_seed: int
    seeds: int
    steps: int
    staleness: int
    tasks: int
    margin: float
    expected: str
    why: str


def plan_of(name: str) -> OrderPlan:
    return OrderPlan(**tomllib.loads(FILE.read_text(encoding="utf-8"))[name])


def config_of(plan: OrderPlan, arm: str, seed: int, *, toy: bool = False) -> RunConfig:
    """The configuration of a run; the end of the arm ``warmup`` is where both others begin."""
    both = {"evaluation": {"every": 0, "limit": plan.tasks}, "engine": {"reproducible": False}}  # as one order needs it
    settled: dict[str, Any] = {"seed": seed, "steps": plan.steps, "checkpoint_every": plan.steps}
    if arm == "warmup":
        settled |= {"steps": 0}
    if arm == "asynchronous":
        settled |= {"order": {"kind": "asynchronous", "staleness": plan.staleness}}
    return configure(load_recipe("quickstart"), TOY if toy else {}, {**settled, **both})


def run(root: Path, plan: OrderPlan, arm: str, seed: int, *, toy: bool) -> dict[str, Any]:
    """A run's line, which is made if it is missing."""

    def make() -> dict[str, Any]:
        start = Start(config_of(plan, "warmup", seed, toy=toy), root / f"warmup-{seed}")
        asyncio.run(finish(*start))
        config = config_of(plan, arm, seed, toy=toy)
        line = {"arm": arm, "seed": seed, **run_cell(start, config, root, figures)}
        print(f"{arm} seed {seed}: {line['before']:.3f} -> {line['after']:.3f}", flush=True)
        return line

    return stored_line(root / f"{arm}-{seed}.json", make)


def figures(folder: Path) -> dict[str, Any]:
    """The figures of a finished run."""
    summary = json.loads((folder / "summary.json").read_text())
    steps = [line for line in read_metrics(folder) if line["phase"] == "train"]
    ages = {name: [line[name] for line in steps] for name in ("staleness", "staleness_max") if name in steps[0]}
    ends = {name: summary[name]["success"] for name in ("before", "before_greedy", "after", "after_greedy")}
    return {**ends, "training": [round(line["success"], 4) for line in steps], **ages}


def judged(plan: OrderPlan, lines: list[dict[str, Any]], measure: str = "after") -> dict[str, Any]:
    """Difference of the arms over seeds, and the verdict.

    Args:
        measure: after is sampled success after training, after_greedy greedy success.
    """
    of = {arm: {str(line["seed"]): [line[measure]] for line in lines if line["arm"] == arm} for arm in ARMS}
    gap = paired_difference(of["asynchronous"], of["synchronous"])
    shown = "worse" if gap.high < 0 else "not worse" if gap.low > -plan.margin else "nothing is shown"
    means = {arm: round(sum(value for [value] in of[arm].values()) / len(of[arm]), 4) for arm in ARMS}
    ends = {"difference": gap.mean, "ci_low": gap.low, "ci_high": gap.high}
    return {**means, **{name: round(value, 4) for name, value in ends.items()}, "shown": shown}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where warm-ups and lines lie")
    parser.add_argument("--run", choices=OUTS, default="short")
    parser.add_argument("--toy", action="store_true", help="sizes that show that it runs, and nothing else")
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    if chosen.toy and not chosen.out:
        parser.error("toy sizes are no result: give --out")
    out = chosen.out or OUTS[chosen.run]
    about = origin(out, ("torch", "transformers", "gymnasium", "numpy"), run_folder=chosen.folder)
    plan = plan_of(chosen.run)
    if chosen.toy:
        plan = plan._replace(seeds=2, steps=2, staleness=1, tasks=2)
    transformers_logging.disable_progress_bar()
    root = chosen.folder.resolve() / about["commit"] / chosen.run
    seeds = range(plan.first_seed, plan.first_seed + plan.seeds)
    lines = [run(root, plan, arm, seed, toy=chosen.toy) for seed in seeds for arm in ARMS]
    result = {**judged(plan, lines), "greedy": judged(plan, lines, "after_greedy")}
    print(result)
    write(out, about, {"plan": plan._asdict(), "result": result, "runs": lines})


if __name__ == "__main__":
    main()
