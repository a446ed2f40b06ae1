"""Episodes an hour in synchronous and asynchronous order, where turns take their time, next to the prediction.

    python -m benchmarks.scale.async_throughput                  about half an hour; every order once, in two worlds
    python -m benchmarks.scale.async_throughput --toy --out toy.json

Each order is a run in a process of its own, with as many worker processes as places for episodes. An evaluation before
the first step has started them all. The prediction is the simulator's: the schedule that the loop asks, with the time
that the world takes, and with what the synchronous run measured of the rest, which are the policy's seconds a turn and
the learner's a step. ``turns`` is the mean length of what was learnt from. ``length_bias`` compares it with that of the
synchronous order, which plays the same tasks; where groups may overtake others or are dropped, it is the run's own
figure, see ``METRICS``.

The two worlds, and what the simulator said of them before they were measured, with tasks drawn at random, 0.03 s of the
policy a turn and 0.4 s of the learner a step:

- ``as many places as a step has episodes``: 16. No order can do more than fill the places that the synchronous order
  leaves empty. Expected at a staleness of 4: 2.6 times as many episodes an hour as in synchronous order, 1 % dropped.
- ``three times as many places``: 48, and turns of a second in the median, so that the policy is no limit. Places that
  wait for containers, browsers and models are cheap, and what they wait for is elsewhere, so that a run has more of
  them than a step has episodes. The tail is the same. The synchronous order cannot use the other places, since nothing
  else may begin. Expected: 1.8 times at a staleness of 1, 3.9 at 4, 5.7 at 8; at 4 with ``any`` 4.2; with ``drop``
  5.9, a fifth of all groups dropped, and episodes that are 5 % shorter than those that were drawn.
"""

import argparse
import asyncio
import json
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean, median
from typing import Any

from benchmarks.kit.process import measure_apart
from benchmarks.kit.provenance import RESULTS, origin, write
from benchmarks.scale import latency_world as world
from manyturn.agents.records.episode_rows import read_episodes, read_turns
from manyturn.trainers.play.order.schedule import Consume, EpisodePlace
from manyturn.trainers.play.order.simulation import Workload, simulate
from manyturn.trainers.recipe.config import parse_config
from manyturn.trainers.record.run_folder import read_metrics, step_tables
from manyturn.trainers.run.loop.loop import train

OUT = RESULTS / "scale_out.json"
ORDERS = ((0, "drawn"), (1, "drawn"), (4, "drawn"), (8, "drawn"), (4, "any"), (4, "drop"))  # 0 is the synchronous one
_AGENT = {"instructions": False, "format": "free_text", "max_context": 256}


@dataclass(frozen=True)
class Load:
    """Load of each run.

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


USUAL = {
    "as many places as a step has episodes": Load(tasks=8, group=2, places=16, steps=20, seconds=0.15, tail=1.2),
    "three times as many places": Load(tasks=8, group=2, places=48, steps=20, seconds=1.0, tail=1.2),
}
TOY = {
    "few places": Load(tasks=2, group=2, places=4, steps=3, seconds=0.02, tail=0.5),
    "more places": Load(tasks=2, group=2, places=6, steps=3, seconds=0.02, tail=0.5),
}


def play(load: Load, staleness: int, consume: str, folder: Path) -> None:
    """A run, in this process."""
    order = {"kind": "asynchronous", "staleness": staleness, "consume": consume} if staleness else {}
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
        "evaluation": {"limit": load.places},
        "steps": load.steps,
        "checkpoint_every": load.steps,
        "device": "cpu",
    }
    asyncio.run(train(parse_config(config), folder))


def measured(load: Load, folder: Path) -> dict[str, float]:
    """Figures of a run, from its own metrics."""
    lines = [line for line in read_metrics(folder) if line["phase"] == "train"]
    seconds = sum(line["rollout_seconds"] + line["learn_seconds"] for line in lines)
    figures = {"episodes_per_hour": 3600 * load.steps * load.episodes / seconds}
    figures["turns"] = mean(line["turns"] for line in lines)
    for name in ("staleness", "learner_idle", "players_idle", "mixed_versions", "dropped"):
        if name in lines[0]:
            figures[name] = mean(line[name] for line in lines)
    if "staleness_max" in lines[0]:
        figures["staleness_max"] = max(line["staleness_max"] for line in lines)
    if "length_bias" in lines[0]:
        figures["length_bias"] = lines[-1]["length_bias"]
    return figures


@dataclass(frozen=True)
class Costs:
    """Seconds of the synchronous run besides the world's own seconds.

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

    def number(self, place: EpisodePlace) -> int:
        """Number of the place's task; steps beyond the last are taken to be like the first ones."""
        return self.numbers[(place.step - 1) % len(self.numbers)][place.number]

    def play_seconds(self, load: Load, place: EpisodePlace) -> float:
        number = self.number(place)
        return sum(_slept(load, number, turn) + self.turn for turn in range(world.turns_of(number)))


def _slept(load: Load, number: int, turn: int) -> float:
    return world.turn_seconds(load.seconds, load.tail, number, turn)


def predicted(load: Load, staleness: int, consume: Consume, costs: Costs) -> dict[str, float]:
    """Episodes an hour, the share that is dropped, and what that does to lengths, by the simulator."""
    work = Workload(
        load.episodes,
        load.steps,
        staleness,
        load.places,
        lambda place: costs.play_seconds(load, place),
        lambda step: costs.step,
        groups=load.tasks,
        consume=consume,
    )
    simulated = simulate(work)
    learnt, dropped = (
        [world.turns_of(costs.number(place)) for places in steps.values() for place in places]
        for steps in (simulated.learnt, simulated.dropped)
    )
    figures = {"predicted_per_hour": 3600 * load.steps * load.episodes / simulated.seconds}
    if consume != "drawn":
        figures["predicted_dropped"] = len(dropped) / len(learnt + dropped)
        figures["predicted_length_bias"] = mean(learnt) / mean(learnt + dropped) - 1
    return figures


def rows_of(load: Load, folder: Path) -> list[dict[str, Any]]:
    """Run every order, and compare."""
    rows, costs = list[dict[str, Any]](), None
    for staleness, consume in ORDERS:
        path = folder / f"{consume}-{staleness}"
        order = {"load": asdict(load), "staleness": staleness, "consume": consume, "folder": str(path)}
        measure_apart(__file__, "--one", json.dumps(order))
        costs = costs or Costs.of(load, path)
        figures = measured(load, path) | predicted(load, staleness, consume, costs)
        first = rows[0] if rows else figures
        figures["times_synchronous"] = figures["episodes_per_hour"] / first["episodes_per_hour"]
        figures["measured_over_predicted"] = figures["episodes_per_hour"] / figures["predicted_per_hour"]
        figures.setdefault("length_bias", figures["turns"] / first["turns"] - 1)
        shown = {name: float(f"{value:.4g}") for name, value in figures.items()}
        name = f"asynchronous, k = {staleness}" + (f", {consume}" if consume != "drawn" else "")
        rows.append({"name": name if staleness else "synchronous", **shown})
        print(f"{rows[-1]['name']:22}" + "  ".join(f"{name} {value:g}" for name, value in shown.items()), flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--toy", action="store_true", help="sizes that show that it runs, and nothing else")
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--one", help=argparse.SUPPRESS)  # what a process of its own is told to run
    options = parser.parse_args()
    if options.one:
        order = json.loads(options.one)
        play(Load(**order["load"]), order["staleness"], order["consume"], Path(order["folder"]))
        print("null")
        return
    if options.toy and options.out == OUT:
        parser.error("toy sizes are no result: give --out")
    about = origin(options.out, ("torch", "transformers", "gymnasium", "numpy"))
    worlds = []
    for name, load in (TOY if options.toy else USUAL).items():
        print(name, flush=True)
        with tempfile.TemporaryDirectory() as folder:
            worlds.append({"name": name, "load": asdict(load), "rows": rows_of(load, Path(folder))})
    write(options.out, about, {"worlds": worlds})


if __name__ == "__main__":
    main()
