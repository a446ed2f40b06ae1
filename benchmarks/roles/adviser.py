"""A tiny adviser that learns to steer a frozen language model.

    python -m benchmarks.roles.adviser RUN-FOLDER --model MODEL

The model plays easy mazes alone, with the advice of random commands, and with an adviser of the recipe ``adviser-tiny``
before and after training; all on the same held-out tasks. ``MODEL`` is the folder of SmolLM2-135M-Instruct, whose
weights never change. The same command continues runs that were interrupted. ``adviser.toml`` has what was expected.
"""

import argparse
import json
import tomllib
from pathlib import Path
from typing import Any

import manyturn as mt
from benchmarks.kit.process import finish_recipe, words_of
from benchmarks.kit.provenance import RESULTS, origin, write

HERE = Path(__file__).with_suffix(".toml")
OUT = RESULTS / "adviser.json"
ENV = "manyturn/Maze-v0"
ACTOR = {"agent": {"only_admissible": True, "format": "free_text", "max_context": 900}, "sampling": {"max_tokens": 8}}


def alone(model: Path, games: int, out: Path, **sampling: float) -> dict[str, Any]:
    """Success of the model without an adviser."""
    options = {"agent": ACTOR["agent"], "sampling": {**ACTOR["sampling"], **sampling}}
    mt.evaluate(str(model), ENV, env_args={"difficulty": "easy"}, limit=games, out=out, **options)
    return _evaluated(out)


def advised(run: Path, games: int, out: Path, adviser: str) -> dict[str, Any]:
    """Success with another adviser than the run's."""
    mt.evaluate(str(run), limit=games, out=out, roles={"adviser": adviser})
    return _evaluated(out)


def _evaluated(out: Path) -> dict[str, Any]:
    success = json.loads((out / "summary.json").read_text())["success"]
    return _success({**success, "success": success["mean"]})


def _success(summary: dict[str, Any]) -> dict[str, Any]:
    return {name: summary[name] for name in ("success", "ci_low", "ci_high")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--model", type=Path, required=True)
    chosen = parser.parse_args()
    plan = tomllib.loads(HERE.read_text())
    games = plan["games"]
    about = origin(OUT, ("torch", "transformers", "numpy"), run_folder=chosen.folder, model=chosen.model)
    changes = {
        **plan["run"],
        "roles": {"actor": {"policy": str(chosen.model.resolve()), **ACTOR}},
        "evaluation": {"limit": games},
    }
    rows = []
    for seed in range(plan["seeds"]):
        run = chosen.folder / f"seed-{seed}"
        summary = finish_recipe("adviser-tiny", seed, run, words_of(changes), **changes)
        names = ("before", "before_greedy", "after", "after_greedy")
        row = {"seed": seed, **{name: _success(summary[name]) for name in names}, "difference": summary["difference"]}
        row |= {"difference_greedy": summary["difference_greedy"], "warmup": summary["warmup"]}
        row["random_advice"] = advised(run, games, chosen.folder / f"random-{seed}", "random")
        row["expert_advice"] = advised(run, games, chosen.folder / f"expert-{seed}", "expert")
        rows.append(row)
    model = {
        "alone": alone(chosen.model, games, chosen.folder / "alone"),
        "alone_greedy": alone(chosen.model, games, chosen.folder / "alone-greedy", temperature=0.0),
    }
    write(OUT, about, {"plan": plan, **model, "runs": rows})


if __name__ == "__main__":
    main()
