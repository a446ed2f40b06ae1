"""Episodes an hour in synchronous and in asynchronous order, where turns take their time, and what was predicted.

    python benchmarks/scale_out.py                  a few minutes; every order once
    python benchmarks/scale_out.py --toy --out toy.json

Each order is a run of the same tasks in a process of its own, with as many worker processes as episodes side by side.
The prediction is the simulator's: the schedule that the loop asks, with the world's own seconds, and with what the
synchronous run measured of the rest, which are the policy's seconds a turn and the learner's a step. ``turns`` is the
mean length of what was learnt from: an order that prefers short episodes has fewer.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean, median
from typing import Any

import scale_out_world as world
from provenance import RESULTS, origin, write

from manyturn.agents.records import read_episodes, read_turns
from manyturn.trainers.play.schedule import EpisodePlace
from manyturn.trainers.play.simulation import Workload, simulate
from manyturn.trainers.recipe.config import parse_config
from manyturn.trainers.record.run_folder import read_metrics, step_tables
from manyturn.trainers.run.loop import train

OUT = RESULTS / "scale_out.json"
ORDERS = (0, 1, 4, 8)  # staleness; 0 is the synchronous order
_AGENT = {"instructions": False, "format": "free_text", "max_context": 256}


@dataclass(frozen=True)
class Load:
    """What each run does.

    Attributes:
        places: episodes side by side.
        seconds, tail: of a turn; see ``Errands``.
    """

    tasks: int
    group: int
    places: int
    steps: int
    seconds: float
    tail: float

    @property
    def episodes(self) -> int:
        return self.tasks * self.group


USUAL = Load(tasks=8, group=2, places=16, steps=20, seconds=0.15, tail=1.2)
TOY = Load(tasks=2, group=2, places=4, steps=3, seconds=0.02, tail=0.5)


def play(load: Load, staleness: int, folder: Path) -> None:
    """A run, in this process."""
    order = {"kind": "asynchronous", "staleness": staleness} if staleness else {}
    arguments = {"seconds": load.seconds, "tail": load.tail}
    config = {
        "env": {"id": f"{world.__file__}:Errands", "args": arguments, "workers": load.places},
        "model": {"name": "tiny", "width": 32, "layers": 2, "heads": 2, "sample_tasks": 32},
        "agent": _AGENT,
        "engine": {"name": "transformers", "reproducible": False},  # in both orders, so that nothing else differs
        "sampling": {"max_tokens": 4},
        "warmup": {"episodes": 0},
        "rollout": {"tasks": load.tasks, "group": load.group, "concurrency": load.places},
        "order": order,
        "credit": {"advantage": "rloo"},
        "learner": {"minibatch": load.episodes, "old_logprobs": "engine"},
        "evaluation": {"limit": 1},
        "steps": load.steps,
        "checkpoint_every": load.steps,
        "device": "cpu",
    }
    asyncio.run(train(parse_config(config), folder))


def run_apart(load: Load, staleness: int, folder: Path) -> None:
    """A run in a process of its own."""
    told = json.dumps({"load": asdict(load), "staleness": staleness, "folder": str(folder)})
    done = subprocess.run([sys.executable, __file__, "--one", told], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"staleness {staleness} failed:\n{done.stderr}")


def measured(load: Load, folder: Path) -> dict[str, float]:
    """What a run says of itself."""
    lines = [line for line in read_metrics(folder) if line["phase"] == "train"]
    seconds = sum(line["rollout_seconds"] + line["learn_seconds"] for line in lines)
    found = {"episodes_per_hour": 3600 * load.steps * load.episodes / seconds}
    found["turns"] = mean(line["turns"] for line in lines)
    for name in ("staleness", "learner_idle", "players_idle", "mixed_versions"):
        if name in lines[0]:
            found[name] = mean(line[name] for line in lines)
    if "staleness_max" in lines[0]:
        found["staleness_max"] = max(line["staleness_max"] for line in lines)
    return found


@dataclass(frozen=True)
class Costs:
    """What the synchronous run took besides the world's own seconds.

    Attributes:
        numbers: of each step's episodes, the task.
        turn: seconds of a turn.
        step: seconds of an update.
    """

    numbers: list[list[int]]
    turn: float
    step: float

    @classmethod
    def of(cls, load: Load, folder: Path) -> "Costs":
        numbers, beside = list[list[int]](), list[float]()
        for step in range(1, load.steps + 1):
            turns, episodes = step_tables(folder, step)
            numbers.append([int(row["task"].rpartition("/")[2]) for row in read_episodes(episodes)])
            for row in read_turns(turns):
                slept = _slept(load, int(row["task"].rpartition("/")[2]), row["turn"])
                beside.append(row["seconds_policy"] + row["seconds_env"] - slept)
        lines = [line for line in read_metrics(folder) if line["phase"] == "train"]
        return cls(numbers, mean(beside), median(line["learn_seconds"] for line in lines))

    def play_seconds(self, load: Load, place: EpisodePlace) -> float:
        number = self.numbers[place.step - 1][place.number]
        return sum(_slept(load, number, turn) + self.turn for turn in range(world.turns_of(number)))


def _slept(load: Load, number: int, turn: int) -> float:
    return world.turn_seconds(load.seconds, load.tail, number, turn)


def predicted(load: Load, staleness: int, costs: Costs) -> float:
    """Episodes an hour, by the simulator."""
    work = Workload(
        load.episodes,
        load.steps,
        staleness,
        load.places,
        lambda place: costs.play_seconds(load, place),
        lambda step: costs.step,
    )
    return 3600 * load.steps * load.episodes / simulate(work).seconds


def rows_of(load: Load, folder: Path) -> list[dict[str, Any]]:
    """Run every order, and compare."""
    rows, costs = list[dict[str, Any]](), None
    for staleness in ORDERS:
        path = folder / f"staleness-{staleness}"
        run_apart(load, staleness, path)
        costs = costs or Costs.of(load, path)
        found = measured(load, path)
        found["predicted_per_hour"] = predicted(load, staleness, costs)
        first = rows[0] if rows else found
        found["times_synchronous"] = found["episodes_per_hour"] / first["episodes_per_hour"]
        found["length_bias"] = found["turns"] / first["turns"] - 1
        shown = {name: float(f"{value:.4g}") for name, value in found.items()}
        rows.append({"name": f"asynchronous, k = {staleness}" if staleness else "synchronous", **shown})
        print(f"{rows[-1]['name']:22}" + "  ".join(f"{name} {value:g}" for name, value in shown.items()), flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--toy", action="store_true", help="sizes that show that it runs, and nothing else")
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--one", help=argparse.SUPPRESS)  # what a process of its own is told to run
    options = parser.parse_args()
    if options.one:
        told = json.loads(options.one)
        play(Load(**told["load"]), told["staleness"], Path(told["folder"]))
        return
    if options.toy and options.out == OUT:
        parser.error("toy sizes are no result: give --out")
    about, load = origin(options.out, ("torch", "transformers", "gymnasium", "numpy")), TOY if options.toy else USUAL
    with tempfile.TemporaryDirectory() as folder:
        write(options.out, about, {"load": asdict(load), "rows": rows_of(load, Path(folder))})


if __name__ == "__main__":
    main()
