"""Recipe against recipe, as published: the same worlds, panels, budget and warmed-up weights, seed by seed.

Recipes differ in more than their method; ``credit_methods.py`` takes them apart.

    python benchmarks/credit.py RUN-FOLDER --seeds 8 --jobs 2
    python benchmarks/credit.py RUN-FOLDER --worlds tempting repeated --methods grpo gigpo --seeds 2 --minutes 30

The same command continues where it was: runs whose results lie in --out or in the folder are left alone, one that was
begun goes on, and with --minutes those that go on at the end of the time are asked to stop and save. Seeds are worked
off one after the other, so that an unfinished benchmark has all methods on fewer seeds. What is finished goes to --out,
one line of JSON for each run; ``credit_table.py`` makes a table and a figure of it, which lie beside.
"""

import argparse
import json
import math
import multiprocessing
import os
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from credit_cell import in_child
from credit_plan import METHODS, WORLDS, Cell, config_of, plan
from credit_table import publish, read
from provenance import RESULTS, commit, refuse

from manyturn.agents.evaluation.paired_comparison import read_evaluation, values_over
from manyturn.envs.contract.durable import replace_text
from manyturn.envs.contract.panel import portable_name
from manyturn.trainers.recipe.config import RunConfig, configure
from manyturn.trainers.record.run_folder import read_config, read_metrics

OUT = RESULTS / "credit.jsonl"
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
_IMPORTED_ONCE = [
    "manyturn.trainers.run.loop.loop",
    "transformers.models.llama.modeling_llama",
]  # a tenth of a run
_PROCESSES = multiprocessing.get_context("forkserver")


class Runner:
    """Works off cells, each in a process of its own, until the time is over.

    Args:
        root: the benchmark's folder.
        steps: of each run; None for the benchmark's own number.
        seconds: after which no cell begins, and those that go on are asked to stop.
    """

    def __init__(self, root: Path, steps: int | None, seconds: float):
        self.root, self.steps = root, steps
        self._end = time.monotonic() + seconds
        self._saying = threading.Lock()
        self.failed: list[Cell] = []

    def work(self, cells: Sequence[Cell]) -> None:
        """Cells that share a warm-up, one after the other."""
        for cell in cells:
            if time.monotonic() < self._end and not (self.root / cell.folder / "made.json").is_file():
                self._run(cell)

    def _run(self, cell: Cell) -> None:
        began, log = time.monotonic(), self.root / cell.folder.with_suffix(".log")
        log.parent.mkdir(parents=True, exist_ok=True)
        process = _PROCESSES.Process(target=in_child, args=(self.root, cell, self.steps, log))
        process.start()
        process.join(None if math.isinf(self._end) else max(0.0, self._end - began))
        asked = process.is_alive()
        if asked:
            process.terminate()
            process.join()
        told = f"{time.monotonic() - began:.0f} s"
        if not (self.root / cell.folder / "made.json").is_file():
            told = "stopped, to be continued" if asked else f"failed, see {log}"
            self.failed += [] if asked else [cell]
        with self._saying:
            print(f"{cell.world:10} {cell.method:20} seed {cell.seed}  {told}", flush=True)


def result(root: Path, cell: Cell) -> dict[str, Any]:
    """What is kept of a finished run.

    ``training`` is the success of each step's training episodes, ``penalised`` the share of their turns that a penalty
    is taken from. ``successes`` has a digit for each task of the panel, in its order: how many of its ``repeats``
    episodes succeeded. Each point of ``curve`` is [step, updates, tokens, seconds, success]: gradient updates, tokens
    in trained sequences and seconds of play and learning since the warm-up, and success on validation tasks; at step 0
    on the panel.
    """
    folder = root / cell.folder
    config, lines = read_config(folder), read_metrics(folder)
    summary = json.loads((folder / "summary.json").read_text())
    evaluation = read_evaluation(folder)
    panel = evaluation.panel
    scores = values_over(evaluation.rows, "success", dict(zip(panel.contents, panel.tasks, strict=True)))
    repeats = config.evaluation.repeats
    if any(len(scores.get(task, ())) != repeats for task in panel.tasks):
        raise SystemExit(f"{folder}: episodes of the evaluation ended in errors: remove the folder and run it again")
    return {
        **cell._asdict(),
        **json.loads((folder / "made.json").read_text()),
        "config": told_of(config),
        "panel": panel.hash,
        "repeats": repeats,
        "successes": "".join(str(int(sum(scores[task]))) for task in panel.tasks),
        **{name: summary[name]["success"] for name in ("before", "after", "random", "expert")},
        "training": [round(line["success"], 4) for line in lines if line["phase"] == "train"],
        "penalised": [round(line["penalised_turns"], 4) for line in lines if line["phase"] == "train"],
        "curve": curve(lines, summary["before"]["success"]),
    }


def told_of(config: RunConfig) -> dict[str, Any]:
    """A configuration as results tell it: what differs from the environment's defaults, wherever it was run."""
    values = beyond(config.model_dump(mode="json"), configure({"env": {"id": config.env.id}}).model_dump(mode="json"))
    values["env"] = {**values.get("env", {}), "id": portable_name(config.env.id)}
    return values


def beyond(values: dict[str, Any], defaults: dict[str, Any]) -> dict[str, Any]:
    """The entries that differ from the defaults; a part's name stays with its options."""
    told = {}
    for name, value in values.items():
        default = defaults.get(name)
        if isinstance(value, dict) and isinstance(default, dict) and value.get("name") == default.get("name"):
            value = beyond(value, default)
            if value.keys() - {"name"}:
                told[name] = value
        elif value != default or name == "name":
            told[name] = value
    return told


def curve(lines: Sequence[dict[str, Any]], before: float) -> list[list[float]]:
    """Points of the learning curve, from the lines of a run's metrics."""
    start = max((line.get("updates", 0) for line in lines if line["phase"] == "warmup"), default=0)
    points, updates, tokens, seconds = [[0, 0, 0, 0.0, before]], 0, 0, 0.0
    for line in lines:
        if line["phase"] == "train":
            updates = line["version"] - start
            tokens += line["trained_tokens"]
            seconds += line["rollout_seconds"] + line["learn_seconds"]
        elif line["phase"] == "validation":
            points.append([line["step"], updates, tokens, round(seconds, 1), line["success"]])
    return points


def gather(root: Path) -> list[dict[str, Any]]:
    """All finished runs in the folder but the warm-ups."""
    folders = sorted(made.parent for made in root.glob("*/*/seed-*/made.json"))
    cells = [Cell(f.parts[-3], f.parts[-2], int(f.name.removeprefix("seed-"))) for f in folders]
    return [result(root, cell) for cell in cells if cell.method != "warmup"]


def earlier(path: Path, steps: int | None) -> dict[Cell, dict[str, Any]]:
    """The results in a file; those of another configuration than the cell has now are told and left out."""
    found = {Cell(line["world"], line["method"], line["seed"]): line for line in (read(path) if path.is_file() else ())}
    kept = {cell: line for cell, line in found.items() if line["config"] == told_of(config_of(cell, steps))}
    if len(kept) < len(found):
        print(f"{len(found) - len(kept)} results in {path} are of another configuration and will be dropped")
    return kept


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the runs lie")
    parser.add_argument("--worlds", nargs="+", default=list(WORLDS), choices=list(WORLDS))
    parser.add_argument("--methods", nargs="+", default=list(METHODS), help="recipes, or several joined by +")
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--jobs", type=int, default=2, help="processes side by side, of one thread each")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="time to work for")
    parser.add_argument("--steps", type=int, help="steps of each run, to try things out")
    parser.add_argument("--out", type=Path, default=OUT, help="file for the results; the figure goes beside it")
    chosen = parser.parse_args()
    if min(chosen.seeds, chosen.jobs) < 1:
        parser.error("--seeds and --jobs are at least 1")
    return chosen


def main() -> None:
    chosen = options()
    refuse(chosen.out, commit())
    os.environ.update(_ONE_THREAD)
    _PROCESSES.set_forkserver_preload(_IMPORTED_ONCE)
    known = earlier(chosen.out, chosen.steps)
    groups = [
        [cell for cell in group if cell not in known] for group in plan(chosen.worlds, chosen.methods, chosen.seeds)
    ]
    for cell in {(cell.world, cell.method): cell for group in groups for cell in group}.values():
        config_of(cell, chosen.steps)  # a wrong name is told before anything runs
    runner = Runner(chosen.folder.resolve(), chosen.steps, 60 * chosen.minutes)
    with ThreadPoolExecutor(chosen.jobs) as pool:
        list(pool.map(runner.work, groups))
    made = {Cell(line["world"], line["method"], line["seed"]): line for line in gather(chosen.folder)}
    command = f"python benchmarks/credit.py RUN-FOLDER --worlds {' '.join(chosen.worlds)} --methods "
    command += f"{' '.join(chosen.methods)} --seeds {chosen.seeds} --out {chosen.out}"
    own = {} if chosen.out == OUT else {"command": command}  # a file that is not named as the script says who made it
    results = [{**line, **own} for _, line in sorted((known | made).items())]
    for line in results:
        refuse(chosen.out, line["commit"])
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    replace_text(chosen.out, "".join(json.dumps(line, allow_nan=False) + "\n" for line in results))
    print(publish(results, chosen.out))
    left = sum(cell not in made for group in groups for cell in group)
    print(f"{len(results)} runs are in {chosen.out}; {left} of those asked for are not finished")
    sys.exit(1 if runner.failed else 0)


if __name__ == "__main__":
    main()
