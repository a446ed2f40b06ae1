"""A tiny adviser that learns to steer a frozen language model.

    python -m benchmarks.roles.adviser RUN-FOLDER --model MODEL            about 15 minutes of CPU time for each seed
    python -m benchmarks.roles.adviser RUN-FOLDER --model MODEL --seed 1 --out benchmarks/results/adviser_seed_1.json

The model plays easy mazes alone, with the advice of random commands, and with an adviser of the recipe ``adviser-tiny``
before and after training; all on the same held-out tasks. In a run's own greedy figures the adviser is greedy and the
model samples; where a name ends in ``both_greedy``, both are greedy. ``MODEL`` is the folder of
SmolLM2-135M-Instruct, whose weights never change. The same command continues runs that were interrupted.
``adviser.toml`` has what was expected.
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
GREEDY = {"temperature": 0.0}


def alone(model: Path, games: int, out: Path, **sampling: float) -> dict[str, Any]:
    """Success of the model without an adviser."""
    options = {"agent": ACTOR["agent"], "sampling": {**ACTOR["sampling"], **sampling}}
    mt.evaluate(str(model), ENV, env_args={"difficulty": "easy"}, limit=games, out=out, **options)
    return _evaluated(out)


def advised(run: Path, games: int, out: Path, **roles: Any) -> dict[str, Any]:
    """Success with another adviser or actor than the run's; a greedy actor has the run's adviser greedy too."""
    greedy = {"sampling": GREEDY} if "actor" in roles and "adviser" not in roles else {}
    mt.evaluate(str(run), limit=games, out=out, roles=roles, **greedy)
    return _evaluated(out)


def controls(run: Path, actor: dict[str, Any], games: int, seed: int) -> dict[str, Any]:
    """Success with random advice, with the expert's, and with a greedy actor."""
    greedy = {**actor, "sampling": {**actor["sampling"], **GREEDY}}
    figures = {"after_both_greedy": advised(run, games, run.with_name(f"both-greedy-{seed}"), actor=greedy)}
    for adviser in ("random", "expert"):
        place = run.with_name(f"{adviser}-{seed}")
        figures[f"{adviser}_advice"] = advised(run, games, place, adviser=adviser)
        place = run.with_name(f"{adviser}-greedy-{seed}")
        figures[f"{adviser}_advice_greedy"] = advised(run, games, place, adviser=adviser, actor=greedy)
    return figures


def _evaluated(out: Path) -> dict[str, Any]:
    success = json.loads((out / "summary.json").read_text())["success"]
    return _success({**success, "success": success["mean"]})


def _success(summary: dict[str, Any]) -> dict[str, Any]:
    return {name: summary[name] for name in ("success", "ci_low", "ci_high")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--seed", type=int, help="a seed by itself, in place of the plan's")
    parser.add_argument("--out", type=Path, default=OUT)
    chosen = parser.parse_args()
    plan = tomllib.loads(HERE.read_text())
    games = plan["games"]
    about = origin(chosen.out, ("torch", "transformers", "numpy"), run_folder=chosen.folder, model=chosen.model)
    actor = {"policy": str(chosen.model.resolve()), **ACTOR}
    changes = {**plan["run"], "roles": {"actor": actor}, "evaluation": {"limit": games}}
    rows = []
    for seed in range(plan["seeds"]) if chosen.seed is None else (chosen.seed,):
        run = chosen.folder / f"seed-{seed}"
        summary = finish_recipe("adviser-tiny", seed, run, words_of(changes), **changes)
        names = ("before", "before_greedy", "after", "after_greedy")
        row = {"seed": seed, **{name: _success(summary[name]) for name in names}, "difference": summary["difference"]}
        row |= {"difference_greedy": summary["difference_greedy"], "warmup": summary["warmup"]}
        rows.append({**row, **controls(run, actor, games, seed)})
    model = {
        "alone": alone(chosen.model, games, chosen.folder / "alone"),
        "alone_greedy": alone(chosen.model, games, chosen.folder / "alone-greedy", **GREEDY),
    }
    write(chosen.out, about, {"plan": plan, **model, "runs": rows})


if __name__ == "__main__":
    main()
