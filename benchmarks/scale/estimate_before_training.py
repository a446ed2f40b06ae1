"""Estimates that ``manyturn train --dry`` makes before five runs, next to what the runs then took.

    python -m benchmarks.scale.estimate_before_training                    about ten minutes on a free machine
    python -m benchmarks.scale.estimate_before_training --runs quickstart --out FILE
    python -m benchmarks.scale.estimate_before_training --journal FILE     again after an interruption: it goes on
    python -m benchmarks.scale.estimate_before_training --page             the table of docs/planning.md from the result

Estimate and run are processes of their own, one after the other. Seconds of the CPU compare them also where other
programs share the machine, which stretch seconds of the clock. The curve and the report, which are drawn after a run,
are in neither.
"""

import argparse
import asyncio
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.kit.journal import Journal
from benchmarks.kit.process import measure_apart
from benchmarks.kit.provenance import RESULTS, ROOT, origin, write
from benchmarks.kit.table import table
from manyturn.api.training import configured
from manyturn.terminal.overrides import parse_overrides
from manyturn.trainers.recipe.config import RunConfig

OUT = RESULTS / "estimate.json"
PAGE = ROOT / "docs" / "planning.md"
BEGIN = "<!-- figures: python -m benchmarks.scale.estimate_before_training --page -->"
END = "<!-- end of estimates -->"
INTRODUCTION = """Estimates of five runs next to what the runs then took (`python -m
benchmarks.scale.estimate_before_training`). Seconds of the CPU also compare them where other programs share the machine:"""
RUNS: dict[str, tuple[tuple[str, ...], str | None, str]] = {
    "quickstart": (("quickstart",), None, "--steps 15"),
    "grpo in a maze": (
        ("grpo",),
        "manyturn/Maze-v0",
        "--env.args.difficulty easy --steps 12 --warmup.max-updates 200 --warmup.until-success 0 --evaluation.limit 64",
    ),
    "shop-tiny, shortened": (
        ("shop-tiny",),
        None,
        "--steps 8 --warmup.episodes 800 --warmup.max-updates 150 --warmup.until-success 0 --evaluation.limit 64",
    ),
    "booking-tiny, shortened": (
        ("booking-tiny",),
        None,
        "--steps 3 --warmup.episodes 400 --warmup.max-updates 120 --warmup.until-success 0 --evaluation.limit 48",
    ),
    "household-tiny, shortened": (
        ("household-tiny",),
        None,
        "--steps 3 --warmup.max-updates 100 --warmup.until-success 0 --rollout.rounds 1 --rollout.tasks 8 "
        "--evaluation.limit 32 --evaluation.every-limit 16",
    ),
}


def config_of(name: str) -> RunConfig:
    """The configuration of one of the runs."""
    recipes, env, words = RUNS[name]
    return configured(recipes, parse_overrides(words.split()), env)


def estimated(name: str) -> dict[str, Any]:
    """The estimate of a run, and what its trial took."""
    from manyturn.api.estimates.training_estimate import estimate_training

    estimate = estimate_training(config_of(name))
    return {
        "seconds": round(estimate.total.seconds, 1),
        "cpu_seconds": round(estimate.total.cpu_seconds, 1),
        "trial_seconds": round(estimate.trial.seconds, 1),
        "trial_cpu_seconds": round(estimate.trial.cpu_seconds, 1),
        "parts": {part: round(cost.cpu_seconds, 2) for part, cost in estimate.parts.items()},
    }


def taken(name: str) -> dict[str, Any]:
    """Seconds of a run, from when it is loaded until its summary."""
    from manyturn.trainers.run.forecast.trial import StampedLines
    from manyturn.trainers.run.loop.loop import train

    with tempfile.TemporaryDirectory() as passing:
        lines = StampedLines()
        asyncio.run(train(config_of(name), Path(passing) / "run", report=lines))
        cost = lines.cost
    return {"seconds": round(cost.seconds, 1), "cpu_seconds": round(cost.cpu_seconds, 1)}


def section(result: Mapping[str, Any]) -> str:
    """The text between the page's marks, from a result file's content."""
    rows = [
        (
            row["run"],
            *(f"{row[who]['seconds']:,.0f}" for who in ("estimate", "taken")),
            f"{row['ratio']['seconds']:.2f}",
            *(f"{row[who]['cpu_seconds']:,.0f}" for who in ("estimate", "taken")),
            f"{row['ratio']['cpu_seconds']:.2f}",
            f"{row['estimate']['trial_cpu_seconds']:,.0f}",
        )
        for row in result["rows"]
    ]
    head = ("run", "seconds, estimated", "taken", "ratio", "of the CPU, estimated", "taken", "ratio", "of the trial")
    link = f"[{OUT.name}](../{OUT.relative_to(ROOT).as_posix()})"
    machine = f"{link}: on {result['machine']}, with a load of {result['load']}, at commit {result['commit']}."
    return f"{INTRODUCTION}\n\n{machine}\n\n{table(head, rows)}"


def page(text: str, result: Mapping[str, Any] | None) -> str:
    """The page with the section that belongs to the result; nothing stands there without one."""
    before, begins, rest = text.partition(BEGIN)
    _, ends, after = rest.partition(END)
    if not (begins and ends):
        raise SystemExit(f"the page has lost its marks {BEGIN} and {END}")
    return f"{before}{BEGIN}\n\n{f'{section(result)}\n\n' if result else ''}{END}{after}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", nargs="+", choices=RUNS, default=list(RUNS))
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--estimate", choices=RUNS, help=argparse.SUPPRESS)
    parser.add_argument("--take", choices=RUNS, help=argparse.SUPPRESS)
    parser.add_argument("--journal", type=Path, help="keeps each measurement, so that the same command goes on")
    parser.add_argument("--page", action="store_true", help="write the table of docs/planning.md; measures nothing")
    chosen = parser.parse_args()
    if chosen.page:
        PAGE.write_text(page(PAGE.read_text(), json.loads(chosen.out.read_text())))
        return
    if chosen.estimate or chosen.take:
        print(json.dumps(estimated(chosen.estimate) if chosen.estimate else taken(chosen.take)))
        return
    about = origin(chosen.out, ("torch", "transformers", "numpy"), journal=chosen.journal)
    load, rows = round(os.getloadavg()[0], 1), list[dict[str, Any]]()
    with tempfile.TemporaryDirectory() as passing:
        journal = Journal[dict[str, Any]](chosen.journal or Path(passing) / "journal.jsonl", about["commit"])
        for name in chosen.runs:
            for part in ("estimate", "take"):
                if part not in journal.figures.get(name, {}):
                    journal.add(name, part, measure_apart(__file__, f"--{part}", name))
    for name in chosen.runs:
        estimate, run = (journal.figures[name][part] for part in ("estimate", "take"))
        ratios = {part: round(estimate[part] / run[part], 2) for part in ("seconds", "cpu_seconds")}
        rows.append({"run": name, "words": RUNS[name][2], "estimate": estimate, "taken": run, "ratio": ratios})
        print(rows[-1], flush=True)
    write(chosen.out, about, {"load": load, "rows": rows})


if __name__ == "__main__":
    main()
