"""A plan for a thousand GPUs on paper: from committed figures, from assumptions that are named, and from the schedule.

    python benchmarks/thousand_gpus.py            half a minute; writes the result and docs/thousand-gpus.md
    python benchmarks/thousand_gpus.py --page     the page alone, from the result

``thousand_gpus.toml`` has the assumptions. What is measured is read from ``results/``. What a step takes in each order
is the simulator's, which asks the schedule of the training loop.
"""

import argparse
import json
import math
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from provenance import RESULTS, ROOT, origin, write

from manyturn.envs.contract.keys import generator
from manyturn.trainers.play.order.schedule import EpisodePlace
from manyturn.trainers.play.order.simulation import Workload, simulate

ASSUMED, OUT = Path(__file__).with_suffix(".toml"), RESULTS / "thousand_gpus.json"
PAGE = ROOT / "docs" / "thousand-gpus.md"
STEPS, EPISODES, STALENESS = 8, (1024, 4096), (0, 1, 4)

FIGURES = {"measured": "from", "assumed": "which is", "computed": "from"}  # each part with the head of its last column
WORDS = """# A thousand GPUs, on paper

Nobody has run manyturn on a thousand GPUs, and we had no GPU to measure with. This page says what such a run would
need if some assumptions held, and which of its figures were measured. `python benchmarks/thousand_gpus.py` makes it
from committed results, from `benchmarks/thousand_gpus.toml`, and from the simulator of the schedule. Change the
assumptions there for a plan of your own. A smaller run is planned by its own first steps: [planning](planning.md).

## Measured

On two cores of a CPU, with environments that do nothing. Larger numbers are taken to be in proportion, which is an
assumption too.

{measured}

## Assumed

{assumed}

## What follows

{computed}

The driver is no limit: it needs a part of one core. Besides the GPUs, most of what has to be there are the machines for
containers.

## Orders

{steps} steps each, by the simulator. The last column compares with GPUs that are never idle. As many episodes are open
as the order allows, and no more than the samplers can draw for at full speed.

{orders}

The best of these plays {times} times as many episodes an hour as the worst, and still leaves most GPUs idle: too few
episodes are open. That takes an order that plays ahead and steps of many episodes; how many is said above. How much a
policy learns from older episodes and from larger steps is not in this plan.

## What the plan leaves out

- Prompts are taken to be read from a cache. Where caches are lost, drawing is slower.
- A turn takes as long with all episodes open as with a few. Where containers share machines, it takes longer.
- Machines do not fail. What failures do was tried elsewhere: [faults](faults.md).
- One driver holds all episodes. Its memory is that of episodes without a world of their own.
- Several hundred GPUs are taken to learn as fast as one GPU times their number.
"""


@dataclass(frozen=True)
class Assumed:
    """``thousand_gpus.toml``, the values alone."""

    gpus: float
    draw: float
    sequence: float
    learn: float
    handover: float
    turns: int
    reply: float
    observation: float
    answer: float
    tail: float
    longest: float
    per_host: float

    @property
    def said(self) -> float:
        """Tokens that an episode says."""
        return self.turns * self.reply

    @property
    def learnt(self) -> float:
        """Tokens that are learnt from in an episode, observations included."""
        return self.turns * (self.reply + self.observation)

    @property
    def samplers(self) -> float:
        """GPUs that draw, where drawing and learning are to keep up with one another."""
        draw, learn = self.said / self.draw, self.learnt / self.learn
        return round(self.gpus * draw / (draw + learn))

    @property
    def learners(self) -> float:
        return self.gpus - self.samplers

    @property
    def per_second(self) -> float:
        """Episodes, where no GPU is idle."""
        return min(self.samplers * self.draw / self.said, self.learners * self.learn / self.learnt)

    @property
    def episode_seconds(self) -> float:
        """Of an episode in the mean."""
        return self.turns * (self.reply / self.sequence + self.answer_seconds)

    @property
    def answer_seconds(self) -> float:
        """Of an environment in the mean: a lognormal distribution that is cut off."""
        at = math.log(self.longest / self.answer) / self.tail
        below, beyond = _normal(at - self.tail), 1 - _normal(at)
        return self.answer * math.exp(self.tail**2 / 2) * below + self.longest * beyond

    @property
    def open(self) -> float:
        """Episodes that have to be open for that; Little's law."""
        return self.per_second * self.episode_seconds


def _normal(value: float) -> float:
    """The share of a normal distribution below a value."""
    return (1 + math.erf(value / math.sqrt(2))) / 2


def measured() -> dict[str, tuple[float, str, str]]:
    """Name -> figure, unit, and the file that it is of."""
    hosts = next(row for row in _result("scale_hosts.json")["rows"] if row["hosts"] == 4)
    ray = max(_result("scale_ray.json")["rows"], key=lambda row: row["hosts"])
    worlds = [row for row in _rows(_result("scale_out.json")) if "predicted_per_hour" in row]
    off = max(abs(row["episodes_per_hour"] / row["predicted_per_hour"] - 1) for row in worlds)
    memory = 1000 * (hosts["driver_mb"] + hosts["hosts_mb"]) / hosts["open_at_once"]
    return {
        "driver": (hosts["driver_us"], "µs of the driver for a turn, with four hosts", "scale_hosts.json"),
        "memory": (memory, "kB of driver and hosts for an open episode without a world of its own", "scale_hosts.json"),
        "ray": (ray["turns_per_s"], "turns/s of two hosts of Ray on two cores", "scale_ray.json"),
        "simulator": (100 * off, "% by which the simulator was off at most, on two cores", "scale_out.json"),
    }


def _result(name: str) -> Any:
    return json.loads((RESULTS / name).read_text(encoding="utf-8"))


def _rows(value: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for entry in value:
            yield from _rows(entry)


def computed(at: Assumed, known: Mapping[str, tuple[float, str, str]]) -> dict[str, tuple[float, str, str]]:
    """Name -> figure, unit, and what it is computed from."""
    turns = at.per_second * at.turns
    drawing = at.open * at.turns * at.reply / at.sequence / at.episode_seconds / at.samplers
    return {
        "samplers": (at.samplers, "GPUs that draw", "draw, learn, reply and observation"),
        "learners": (at.learners, "GPUs that learn", "all but these"),
        "per_hour": (3600 * at.per_second, "episodes an hour, if no GPU were ever idle", "the two before"),
        "episode": (at.episode_seconds / 60, "minutes of an episode in the mean", "turns, reply, answer and its tail"),
        "open": (at.open, "episodes that have to be open for that", "the two before, by Little's law"),
        "episodes": (
            at.open / 5,
            "episodes of a step, so that so many may be open at a staleness of 4",
            "the one before",
        ),
        "sequences": (drawing, "replies being drawn at the same time on each GPU", "open episodes"),
        "hosts": (at.open / at.per_host, "machines for environments", "open episodes of a host"),
        "driver_cores": (turns * known["driver"][0] * 1e-6, "cores of the driver", "its measured seconds for a turn"),
        "memory_gb": (at.open * known["memory"][0] * 1e-6, "GB of driver and hosts", "measured memory of an episode"),
        "ray_share": (100 * turns / known["ray"][0], "% of what two hosts of Ray did", "their measured turns/s"),
    }


def simulated(at: Assumed) -> list[dict[str, Any]]:
    """What steps of several sizes take in each order."""
    rows = []
    for episodes in EPISODES:
        times = generator("thousand GPUs", episodes).lognormal(
            math.log(at.answer), at.tail, (STEPS, episodes, at.turns)
        )
        play = (times.clip(max=at.longest).sum(axis=2) + at.turns * at.reply / at.sequence).tolist()
        learn = episodes * at.learnt / (at.learners * at.learn) + at.handover

        def seconds(place: EpisodePlace, play: Sequence[Sequence[float]] = play) -> float:
            return play[place.step - 1][place.number]

        for staleness in STALENESS:
            places = min(round(at.open), episodes * (staleness + 1))
            found = simulate(Workload(episodes, STEPS, staleness, places, seconds, lambda step, learn=learn: learn))
            per_hour = 3600 * episodes * STEPS / found.seconds
            rows.append(
                {
                    "episodes": episodes,
                    "staleness": staleness,
                    "open": places,
                    "minutes": float(f"{found.seconds / STEPS / 60:.3g}"),
                    "per_hour": float(f"{per_hour:.3g}"),
                    "of_possible": float(f"{per_hour / (3600 * at.per_second):.2g}"),
                }
            )
            print(rows[-1], flush=True)
    return rows


def page(found: Mapping[str, Any]) -> str:
    """The page, of a result's content."""
    steps = found["steps"]
    best, worst = (pick(steps, key=lambda row: row["per_hour"]) for pick in (max, min))
    parts = {name: _entries(found[name], _link if name == "measured" else str) for name in FIGURES}
    orders = [
        [
            f"{row['episodes']:,}",
            str(row["staleness"] or "synchronous"),
            f"{row['open']:,}",
            _shown(row["minutes"]),
            f"{row['per_hour']:,.0f}",
            f"{row['of_possible']:.0%}",
        ]
        for row in steps
    ]
    heads = ("episodes of a step", "staleness", "open", "minutes a step", "episodes an hour", "of possible")
    tables = {name: _table(("figure", "", head), parts[name]) for name, head in FIGURES.items()}
    times = f"{best['per_hour'] / worst['per_hour']:.0f}"
    return WORDS.format(**tables, orders=_table(heads, orders), steps=STEPS, times=times)


def _entries(figures: Mapping[str, Sequence[Any]], shown: Callable[[str], str]) -> list[list[str]]:
    return [[_shown(value), unit, shown(source)] for value, unit, source in figures.values()]


def _link(file: str) -> str:
    return f"[{file}](../benchmarks/results/{file})"


def _shown(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in (heads, ["---"] * len(heads), *rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--page", action="store_true", help="write the page from the result that is there")
    if not parser.parse_args().page:
        about = origin(OUT, ("numpy",))
        assumed = tomllib.loads(ASSUMED.read_text(encoding="utf-8"))
        at, known = Assumed(**{name: entry["value"] for name, entry in assumed.items()}), measured()
        result = {
            "measured": known,
            "assumed": {name: (entry["value"], entry["unit"], entry["why"]) for name, entry in assumed.items()},
            "computed": computed(at, known),
            "steps": simulated(at),
        }
        write(OUT, about, result)
    PAGE.write_text(page(json.loads(OUT.read_text(encoding="utf-8"))), encoding="utf-8")


if __name__ == "__main__":
    main()
