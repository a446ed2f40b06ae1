"""Success by what of an episode's past the policy reads: all of it, its own summaries, or a window.

    python -m benchmarks.comparisons.context_comparison RUN-FOLDER --jobs 2     hours on two cores
    python -m benchmarks.comparisons.context_comparison RUN-FOLDER --try        one seed, two steps, no result file
    python -m benchmarks.comparisons.context_comparison --table                 the table of the committed result

Each run is a recipe in a fresh process, as a user starts it. ``context_comparison.toml`` has the arms, and what was
expected of them before the runs. The same command continues.
"""

import argparse
import json
import tomllib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.comparisons.expectation import mean_and_range, write_judged
from benchmarks.kit.process import finish_recipe, words_of
from benchmarks.kit.provenance import RESULTS, origin
from benchmarks.kit.table import table
from manyturn.envs.contract.options.overlay import overlay
from manyturn.trainers.record.run_folder import read_metrics

OUT = RESULTS / "context_comparison.json"
PLAN = tomllib.loads(Path(__file__).resolve().with_suffix(".toml").read_text(encoding="utf-8"))
TRY: dict[str, Any] = {
    "steps": 2,
    "warmup": {"max_updates": 10, "check_every": 10, "check_episodes": 4, "must_succeed": False},
    "rollout": {"tasks": 2, "group": 2, "rounds": 1},
    "evaluation": {"limit": 4, "every": 1, "every_limit": 4},
}
FIGURES = {"sampled before": "before", "sampled": "after", "greedy": "after_greedy"}
EQUAL = "at equal tokens"


def line_of(root: Path, arm: str, seed: int, tried: Mapping[str, Any]) -> dict[str, Any]:
    """The figures of a run, which is made or continued unless it is finished."""
    changes, folder = overlay(PLAN["arms"][arm], tried), root / f"{arm}-{seed}"
    summary = finish_recipe(PLAN["recipe"], seed, folder, words_of(changes), **changes)
    lines = read_metrics(folder)
    tokens = {line["step"]: line["played_tokens"] for line in lines if line["phase"] == "train"}
    curve = [[tokens[line["step"]], line["success"]] for line in lines if line["phase"] == "validation"]
    summaries = [line.get("summary/inner_turns", 0.0) for line in lines if line["phase"] == "train"]
    return {
        "arm": arm,
        "seed": seed,
        **{name: summary[key]["success"] for name, key in FIGURES.items()},
        "curve": curve,
        "summaries": round(float(np.mean(summaries)), 3),
        "truncated": round(float(np.mean([x["truncated"] for x in lines if x["phase"] == "train"])), 4),
        "tokens": max(tokens.values()),
        "weights": summary["weights"],
    }


def with_equal_tokens(lines: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Lines with the validation success at as many tokens as the arm of their seed that says fewest says in all.

    >>> long, brief = {"tokens": 9, "curve": [[4, 0.5], [9, 0.7]]}, {"tokens": 5, "curve": [[5, 0.6]]}
    >>> [line["at equal tokens"] for line in with_equal_tokens([{"seed": 1, **long}, {"seed": 1, **brief}])]
    [0.5, 0.6]
    """
    equal = []
    for line in lines:
        least = min(other["tokens"] for other in lines if other["seed"] == line["seed"])
        before = [success for tokens, success in line["curve"] if tokens <= least]
        equal.append({**line, EQUAL: before[-1] if before else None})
    return equal


def summary_table(lines: Sequence[Mapping[str, Any]]) -> str:
    """A row for each arm: means over seeds, with the least and the greatest."""
    columns = (*FIGURES, EQUAL, "summaries", "truncated", "tokens")
    rows = []
    for arm in PLAN["arms"]:
        own = [line for line in lines if line["arm"] == arm]
        rows.append((arm, *(mean_and_range(own, name) for name in columns)))
    return table(("context", *columns), rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", help="where the runs lie")
    parser.add_argument("--jobs", type=int, default=1, help="runs side by side")
    parser.add_argument("--try", action="store_true", dest="tries", help="small runs of one seed, without a result")
    parser.add_argument("--table", action="store_true", help="only print the table of the result")
    parser.add_argument("--out", type=Path, default=OUT)
    chosen = parser.parse_args()
    if chosen.table:
        print(summary_table(json.loads(chosen.out.read_text(encoding="utf-8"))["runs"]))
        return
    if chosen.folder is None:
        parser.error("name a folder for the runs")
    root, tried = chosen.folder.resolve(), TRY if chosen.tries else {}
    about = None if chosen.tries else origin(chosen.out, ("torch", "transformers", "numpy"), run_folder=chosen.folder)
    seeds = range(PLAN["first_seed"], PLAN["first_seed"] + (1 if chosen.tries else PLAN["seeds"]))
    cells = [(arm, seed) for seed in seeds for arm in PLAN["arms"]]
    with ThreadPoolExecutor(chosen.jobs) as pool:
        lines = with_equal_tokens(list(pool.map(lambda cell: line_of(root, cell[0], cell[1], tried), cells)))
    if about is None:
        print(summary_table(lines))
        return
    write_judged(chosen.out, about, PLAN, lines, summary_table(lines))


if __name__ == "__main__":
    main()
