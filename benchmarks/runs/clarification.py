"""Success, turns and questions of a policy that has learned when to ask, against always and never asking.

    python -m benchmarks.runs.clarification RUN-FOLDER      about ten minutes of CPU time

The recipe ``clarification-tiny`` is run for each seed, and its policy plays held-out tasks before and after
reinforcement. ``always`` asks about every attribute that the request leaves open, ``never`` gives the first thing that
fits. The same command continues runs that were interrupted. ``clarification.toml`` has what was expected.
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
OUT = RESULTS / "clarification.json"
RECIPE = "clarification-tiny"
SPLITS = ("test", "test_unseen")
DECODINGS = {"sampled": 1.0, "greedy": 0.0}


class Never:
    """Gives the first thing that fits what the customer has said."""

    asks = False

    def act(self, observation: str, info: dict[str, Any]) -> str:
        listed = info["admissible"]
        if observation.startswith("On the shelf"):
            self.words = set(observation.rpartition(" wants a ")[2].rstrip(".").split())
            self.questions = [command for command in listed if command.startswith("ask")] if self.asks else []
        else:
            self.words.add(observation.rpartition(" ")[2].rstrip("."))
        if self.questions:
            return self.questions.pop()
        gifts = (command for command in listed if command.startswith("give"))
        return next(command for command in gifts if self.words <= set(command.split()))


class Always(Never):
    """Asks about every attribute first."""

    asks = True


def figures(out: Path) -> dict[str, Any]:
    """Success, return, turns and measures of an evaluation, each with its 95 % interval."""
    summary = json.loads((out / "summary.json").read_text())
    return {**{name: summary[name] for name in ("success", "return", "turns")}, **summary["measures"]}


def scripted(folder: Path, tasks: int) -> dict[str, Any]:
    """Figures of the policies that do not learn, by split."""
    rows = dict[str, Any]()
    for name, policy in {"always": Always, "never": Never, "expert": "expert", "random": "random"}.items():
        for split in SPLITS:
            out = folder / "scripted" / f"{name}-{split}"
            mt.evaluate(policy, "manyturn/Clarification-v0", split=split, limit=tasks, seed=1, out=out)
            rows.setdefault(name, {})[split] = figures(out)
    return rows


def learned(run: Path, tasks: int) -> dict[str, Any]:
    """Figures of a run's policy after its warm-up and after its last step, by split and decoding."""
    rows, places = dict[str, Any](), {"before": 0, "after": load_recipe(RECIPE)["steps"]}
    for when, step in places.items():
        for split in SPLITS:
            for decoding, temperature in DECODINGS.items():
                out = run / "meetings" / f"{when}-{split}-{decoding}"
                policy, sampling = f"{run}/checkpoints/step_{step:06d}", {"temperature": temperature}
                mt.evaluate(policy, split=split, limit=tasks, seed=1, out=out, sampling=sampling)
                rows.setdefault(when, {}).setdefault(split, {})[decoding] = figures(out)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    chosen = parser.parse_args()
    plan = tomllib.loads(HERE.read_text())
    about = origin(OUT, ("torch", "transformers", "numpy"), run_folder=chosen.folder)
    result = {"plan": plan, "scripted": scripted(chosen.folder, plan["tasks"]), "runs": list[dict[str, Any]]()}
    for seed in range(plan["seeds"]):
        run = chosen.folder / f"seed-{seed}"
        seconds = finish_recipe(RECIPE, seed, run)["seconds"]
        result["runs"].append({"seed": seed, "seconds": seconds, **learned(run, plan["tasks"])})
        write(OUT, about, result)


if __name__ == "__main__":
    main()
