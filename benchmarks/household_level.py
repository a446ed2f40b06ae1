"""A tiny decoder on Household's first level: how far imitation comes, and what GiGPO adds to it.

    python benchmarks/household_level.py RUN-FOLDER                      about ten minutes of one core
    python benchmarks/household_level.py RUN-FOLDER --toy --out toy.json

``household_level.toml`` says what is expected. Replies are limited to admissible commands, and what the environment
says is learnt too (``warmup.observed``). Both runs of GiGPO begin from the warm-up without noise. One seed: these are
tries that show where it stops, and no comparison. The same command continues.
"""

import argparse
import asyncio
import json
import tomllib
from pathlib import Path
from typing import Any

from provenance import RESULTS, origin, write

from manyturn.envs.contract.layers import overlay
from manyturn.trainers.recipe.config import parse_config
from manyturn.trainers.record.run_folder import read_metrics
from manyturn.trainers.run.loop.loop import train

OUT = RESULTS / "household_level.json"
PLAN = tomllib.loads(Path(__file__).resolve().with_suffix(".toml").read_text(encoding="utf-8"))
RECIPE: dict[str, Any] = {
    "seed": PLAN["seed"],
    "steps": 0,
    "checkpoint_every": 1,
    "device": "cpu",
    "threads": 1,
    "env": {"id": "manyturn/Household-v0", "args": {"difficulty": "tiny", "max_turns": 12}},
    "model": {"name": "tiny", "width": 96, "layers": 3, "heads": 4},
    "agent": {"instructions": False, "max_context": 1024, "only_admissible": True},
    "sampling": {"max_tokens": 20},
    "warmup": {
        "episodes": 4000,
        "noise": 0.0,
        "observed": 0.1,
        "batch": 8,
        "lr": 3e-3,
        "max_updates": 750,
        "until_success": 1.0,
        "must_succeed": False,
        "check_every": 250,
        "check_episodes": 64,
    },
    "rollout": {"tasks": 8, "group": 8},
    "credit": {"advantage": {"name": "gigpo", "gamma": 0.95}},
    "objective": {"name": "clip"},
    "learner": {"lr_schedule": "constant", "minibatch": 16, "packing": "trie", "old_logprobs": "engine"},
    "evaluation": {"limit": 200},
}
TOY = {"warmup": {"episodes": 16, "max_updates": 2, "check_every": 1, "check_episodes": 2}, "evaluation": {"limit": 2}}
TRIES: dict[str, dict[str, Any]] = {
    "imitation": {},
    "imitation, noise 0.4": {"warmup": {"noise": 0.4}},
    "GiGPO at 5e-4": {"learner": {"lr": 5e-4}},
    "GiGPO at 2e-3": {"learner": {"lr": 2e-3}},
}
KEPT = ("success", "ci_low", "ci_high", "turns", "invalid_action_rate")


def recipe_of(name: str, root: Path, toy: bool) -> dict[str, Any]:
    """The recipe of a try."""
    recipe = overlay(RECIPE, TOY) if toy else dict(RECIPE)
    if "learner" not in TRIES[name]:
        return overlay(recipe, TRIES[name])
    begun = {"steps": 1 if toy else PLAN["steps"], "warmup": {"from_run": str(root / folder_of("imitation"))}}
    del recipe["warmup"]
    if toy:
        begun["rollout"] = {"tasks": 1, "group": 2}
    return overlay(overlay(recipe, TRIES[name]), begun)


def folder_of(name: str) -> str:
    return name.replace(",", "").replace(" ", "-")


def run(name: str, root: Path, toy: bool) -> dict[str, Any]:
    """What a try came to."""
    folder = root / folder_of(name)
    if not (folder / "summary.json").is_file():
        begun = (folder / "config.toml").is_file()
        config = None if begun else parse_config(recipe_of(name, root, toy))
        asyncio.run(train(config, folder, resume=begun))
    summary, lines = json.loads((folder / "summary.json").read_text()), read_metrics(folder)
    rows = {row: {key: summary[row][key] for key in KEPT if key in summary[row]} for row in ("before", "after")}
    steps = [round(line["success"], 4) for line in lines if line["phase"] == "train"]
    checks = [round(line["success"], 4) for line in lines if line["phase"] == "warmup"]
    costs = [value for line in lines for key, value in line.items() if key.endswith("_cpu_seconds")]
    print(f"{name}: {rows['before']['success']:.3f} to {rows['after']['success']:.3f}", flush=True)
    return {"name": name, **rows, "checks": checks, "steps": steps, "cpu_seconds": round(sum(costs))}


def judged(rows: list[dict[str, Any]]) -> dict[str, bool]:
    """Which expectations held."""
    found = {row["name"]: row for row in rows}
    first = found["imitation"]["before"]["success"]
    gains = [row["after"]["success"] - row["before"]["success"] for row in rows if row["steps"]]
    return {
        "imitated": first >= PLAN["imitated"],
        "noisy": found["imitation, noise 0.4"]["before"]["success"] <= PLAN["noisy"],
        "no_gain": max(gains) < PLAN["goal"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the runs lie")
    parser.add_argument("--toy", action="store_true", help="sizes that show that it runs, and nothing else")
    parser.add_argument("--out", type=Path, default=OUT)
    chosen = parser.parse_args()
    if chosen.toy and chosen.out == OUT:
        parser.error("toy sizes are no result: give --out")
    about = origin(chosen.out, ("torch", "transformers", "gymnasium", "numpy"), run_folder=chosen.folder)
    rows = [run(name, chosen.folder.resolve(), chosen.toy) for name in TRIES]
    print(judged(rows))
    write(chosen.out, about, {"plan": PLAN, "judged": judged(rows), "rows": rows})


if __name__ == "__main__":
    main()
