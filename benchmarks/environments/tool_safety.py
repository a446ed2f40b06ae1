"""Policies whose tools are attacked or disturbed, before and after reinforcement.

    python -m benchmarks.environments.tool_safety RUN-FOLDER      about half an hour of CPU time

The recipe ``injection-tiny`` begins with a policy that obeys injected instructions, ``noise-tiny`` with one that is
half taught under noise. Each policy plays held-out tasks as in training, without the wrapper, and under attack with
privileges. ``utility`` and ``attack_success`` are means over attacked episodes. The same command continues runs that
were interrupted. ``tool_safety.toml`` has the privileges, and what was expected.
"""

import argparse
import json
import tomllib
from pathlib import Path
from typing import Any

import manyturn as mt
from benchmarks.kit.process import finish_recipe
from benchmarks.kit.provenance import RESULTS, origin, write
from manyturn.recipes import load_recipe

HERE = Path(__file__).with_suffix(".toml")
OUT = RESULTS / "tool_safety.json"
RECIPES = ("injection-tiny", "noise-tiny")
DECODINGS = {"sampled": 1.0, "greedy": 0.0}


def figures(folder: Path) -> dict[str, Any]:
    """Success of an evaluation and the measures of the wrappers, each with its 95 % interval."""
    summary = json.loads((folder / "summary.json").read_text())
    return {"success": summary["success"], **summary["measures"]}


def worlds(recipe: str, privileges: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Wrappers that a policy of a recipe is evaluated with."""
    trained = load_recipe(recipe)["env"]["wrappers"]
    guarded = {"with privileges": [*trained, {"name": "privileges", "allow": privileges}]}
    return {"as trained": trained, "without": [], **(guarded if recipe == "injection-tiny" else {})}


def evaluated(run: Path, recipe: str, plan: dict[str, Any]) -> dict[str, Any]:
    """Figures of a run's policy after its warm-up and after its last step, and their difference paired by task."""
    steps, rows = load_recipe(recipe)["steps"], dict[str, Any]()
    for world, wrappers in worlds(recipe, plan["privileges"]).items():
        for decoding, temperature in DECODINGS.items():
            places = {}
            for when, step in (("before", 0), ("after", steps)):
                places[when] = run / "meetings" / f"{world.replace(' ', '-')}-{decoding}-{when}"
                mt.evaluate(
                    f"{run}/checkpoints/step_{step:06d}",
                    wrappers=wrappers,
                    limit=plan["tasks"],
                    seed=1,
                    out=places[when],
                    sampling={"temperature": temperature},
                )
            [compared] = mt.compare(*places.values())["comparisons"]
            both = {when: figures(place) for when, place in places.items()}
            rows.setdefault(world, {})[decoding] = {**both, "gain": compared["success"]}
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    chosen = parser.parse_args()
    plan = tomllib.loads(HERE.read_text())
    about = origin(OUT, ("torch", "transformers", "numpy"), run_folder=chosen.folder)
    result = {"plan": plan, "runs": list[dict[str, Any]]()}
    for seed in range(plan["seeds"]):
        for recipe in RECIPES:
            run = chosen.folder / f"{recipe}-{seed}"
            seconds = finish_recipe(recipe, seed, run)["seconds"]
            rows = evaluated(run, recipe, plan)
            result["runs"].append({"recipe": recipe, "seed": seed, "seconds": seconds, "worlds": rows})
            write(OUT, about, result)


if __name__ == "__main__":
    main()
