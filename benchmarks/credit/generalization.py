"""Generalization over sizes of the treasure hunt: by method, and with dense or sparse rewards.

    nice -n 15 python -m benchmarks.credit.generalization RUN-FOLDER [--seed 1]
    python -m benchmarks.credit.generalization --table         the table of the committed result

The questions are those of "A Practitioner's Guide to Multi-turn Agentic RL", at the size of a tiny decoder, in
``Treasure``. ``generalization.toml`` has arms, sizes and what is expected, and was committed before the runs. A run's
line is stored at once; the same command on the same commit continues, and processes with ``--seed`` may share a folder.
"""

import argparse
import asyncio
import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from transformers.utils import logging as transformers_logging

from benchmarks.credit.ablations import verdict
from benchmarks.kit.comparison_run import Start, finish, run_cell, stored_line
from benchmarks.kit.provenance import RESULTS, origin, write
from benchmarks.kit.table import table
from manyturn.agents.evaluation.statistics import mean_interval
from manyturn.api.evaluation import evaluate
from manyturn.recipes import load_recipe
from manyturn.recipes.stack import stacked
from manyturn.trainers.recipe.config import RunConfig, configure

OUT = RESULTS / "generalization.json"
PLAN = tomllib.loads(Path(__file__).resolve().with_suffix(".toml").read_text(encoding="utf-8"))
REWARDS = {"sparse": "outcome", "dense": "turns"}
ARMS = tuple(f"{method} {rewards}" for method in PLAN["methods"] for rewards in REWARDS)
REPLIES: dict[str, dict[str, Any]] = {"sampled": {}, "greedy": {"sampling": {"temperature": 0.0}}}
UNSEEN = "unseen"  # hunts of the trained size whose plans and goals no training task has
TOY: dict[str, Any] = {
    "steps": 1,
    "model": {"width": 16, "layers": 1, "heads": 2, "sample_tasks": 40},
    "warmup": {"max_updates": 2, "check_every": 2, "check_episodes": 3, "must_succeed": False},
    "rollout": {"tasks": 2},
}


def config_of(arm: str, seed: int, *, toy: bool = False) -> RunConfig:
    """The configuration of an arm's run; ``toy`` for one of seconds, to see that everything works."""
    method, _, rewards = arm.partition(" ")
    values = stacked([load_recipe("treasure-tiny"), PLAN["base"], PLAN["methods"][method]])
    tasks = PLAN["episodes"] // values["rollout"]["group"]
    settled = {
        "seed": seed,
        "steps": PLAN["steps"],
        "env": {"args": {"rewards": REWARDS[rewards]}},
        "rollout": {"tasks": tasks},
        "evaluation": {"every": 0, "limit": 2},
    }
    return configure(values, settled, TOY if toy else {})


def warmup_of(seed: int, *, toy: bool = False) -> RunConfig:
    """The run whose end all arms of a seed begin with."""
    settled = {"seed": seed, "evaluation": {"every": 0, "limit": 2}}
    return configure(stacked([load_recipe("treasure-tiny"), PLAN["base"]]), settled, TOY if toy else {}, {"steps": 0})


def figures(folder: Path, limit: int) -> dict[str, Any]:
    """Success of a finished run on held-out hunts of all sizes, by replies and size, and what the run played."""
    rates: dict[str, Any] = {}
    places = {name: ("test", args) for name, args in PLAN["sizes"].items()}
    places[UNSEEN] = ("test_unseen", next(iter(PLAN["sizes"].values())))
    for name, (split, args) in places.items():
        for replies, options in REPLIES.items():
            played = evaluate(str(folder), env_args=args, split=split, limit=limit, **options)
            rates[f"{replies} {name}"] = played.summary["success"]["mean"]
    summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    return {**rates, "played": summary["played"], "weights": summary["weights"]}


def line_of(root: Path, arm: str, seed: int, *, toy: bool = False) -> dict[str, Any]:
    """A run's line, which is made if it is missing."""

    def make() -> dict[str, Any]:
        start = Start(warmup_of(seed, toy=toy), root / f"warmup-{seed}")
        asyncio.run(finish(*start))
        line = run_cell(
            start, config_of(arm, seed, toy=toy), root, lambda run: figures(run, 2 if toy else PLAN["limit"])
        )
        print(f"{arm}, seed {seed}", flush=True)
        return {"arm": arm, "seed": seed, **line}

    return stored_line(root / f"{arm.replace(' ', '-')}-{seed}.json", make)


def page(lines: Sequence[Mapping[str, Any]]) -> str:
    """A row for each arm and kind of replies: means over seeds with half of their 95 % intervals, then the guide's."""
    sizes = (*PLAN["sizes"], UNSEEN)
    rows = []
    for arm in ARMS:
        own = [line for line in lines if line["arm"] == arm]
        for replies in REPLIES if own else ():
            cells = [_cell([line[f"{replies} {size}"] for line in own]) for size in sizes]
            rows.append((arm, replies, str(len(own)), *cells))
    for method in sorted({name for of in PLAN["published"].values() for name in of}):
        cells = [str(PLAN["published"].get(size, {}).get(method, "-")) for size in sizes]
        rows.append((f"{method}, as the guide states of TextWorld", "-", "-", *cells))
    return table(("arm", "replies", "seeds", *sizes), rows)


def _cell(rates: Sequence[float]) -> str:
    interval = mean_interval({str(place): [rate] for place, rate in enumerate(rates)})
    return f"{interval.mean:.3f} ±{(interval.high - interval.low) / 2:.3f}" if len(rates) > 1 else f"{rates[0]:.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", help="where warm-ups and lines lie")
    parser.add_argument("--seed", type=int, help="the only seed that is played; all lines that exist are collected")
    parser.add_argument("--arms", nargs="*", choices=ARMS, default=list(ARMS))
    parser.add_argument("--toy", action="store_true", help="runs of seconds, for one seed")
    parser.add_argument("--table", action="store_true", help="print the table of --out, and run nothing")
    parser.add_argument("--out", type=Path, default=OUT)
    chosen = parser.parse_args()
    if not chosen.table:
        if chosen.folder is None:
            parser.error("name RUN-FOLDER, where warm-ups and lines lie, or give --table")
        about = origin(chosen.out, ("torch", "transformers", "gymnasium", "numpy"), run_folder=chosen.folder)
        transformers_logging.disable_progress_bar()
        root, seeds = chosen.folder.resolve() / about["commit"], 1 if chosen.toy else PLAN["seeds"]
        lines = []
        for seed, arm in [(seed, arm) for seed in range(seeds) for arm in ARMS]:
            plays = chosen.seed in (None, seed) and arm in chosen.arms
            if plays or (root / f"{arm.replace(' ', '-')}-{seed}.json").is_file():
                lines.append(line_of(root, arm, seed, toy=chosen.toy))
        verdicts = [verdict(expected, lines, PLAN["seeds"]) for expected in PLAN["expected"]]
        write(chosen.out, about, {"plan": PLAN, "verdicts": verdicts, "runs": lines})
    print(page(json.loads(chosen.out.read_text(encoding="utf-8"))["runs"]))


if __name__ == "__main__":
    main()
