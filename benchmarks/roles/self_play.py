"""Self-play in bargaining: the last selves against those of earlier steps, each in both seats.

    python -m benchmarks.roles.self_play RUN-FOLDER      about six minutes of CPU time

Two policies of the recipe ``bargain-tiny`` bargain with each other and learn, each for itself. Then the last ones play
held-out games against the ones of earlier steps: as the first side against the past second side, and the other way
round. The same command continues runs that were interrupted. ``self_play.toml`` has what was expected.
"""

import argparse
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import manyturn as mt
from benchmarks.kit.process import finish_recipe, words_of
from benchmarks.kit.provenance import RESULTS, origin, write
from manyturn.agents.evaluation.statistics import mean_interval

HERE = Path(__file__).with_suffix(".toml")
OUT = RESULTS / "self_play.json"
SIDES = ("first", "second")
Earned = dict[str, tuple[float, float]]  # content of a game -> what the first and the second side earn


def meeting(run: Path, first: int, second: int, games: int) -> Earned:
    """Held-out games between the first side after some steps and the second side after others."""
    first_self, second_self = (str(run / "checkpoints" / f"step_{step:06d}") for step in (first, second))
    evaluation = mt.evaluate(first_self, limit=games, seed=1, roles={"second": second_self})
    return {row["content"]: tuple(row["parts"].get(f"{side}.outcome", 0.0) for side in SIDES)
            for row in evaluation.episodes}  # fmt: skip


def lead(as_first: Earned, as_second: Earned) -> dict[str, Any]:
    """Earnings of a self in both seats of a game, those of its opponent, and the difference, paired by game."""
    own = {game: as_first[game][0] + as_second[game][1] for game in as_first}
    other = {game: as_first[game][1] + as_second[game][0] for game in as_first}
    difference = mean_interval({game: [own[game] - other[game]] for game in own})
    return {
        "last": _mean(own.values()),
        "past": _mean(other.values()),
        "difference": {"mean": difference.mean, "ci_low": difference.low, "ci_high": difference.high},
    }


def _mean(values: Any) -> float:
    numbers = list(values)
    return sum(numbers) / len(numbers)


def panel(run: Path, plan: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The last selves against those of each earlier step that was kept, the end of the warm-up first."""
    last: int = plan["steps"]
    rows = []
    for past in range(0, last, plan["every"]):
        as_first, as_second = meeting(run, last, past, plan["games"]), meeting(run, past, last, plan["games"])
        rows.append({"step": past, **lead(as_first, as_second)})
    return rows


def held(runs: Sequence[Mapping[str, Any]], until: int) -> bool:
    """True if the expectation holds: on each seed all selves up to a step are beaten."""
    return all(row["difference"]["ci_low"] > 0 for run in runs for row in run["panel"] if row["step"] <= until)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    chosen = parser.parse_args()
    plan = tomllib.loads(HERE.read_text())
    about = origin(OUT, ("torch", "transformers", "numpy"), run_folder=chosen.folder)
    changes = {"steps": plan["steps"], "checkpoint_every": plan["every"], "keep_checkpoints": plan["steps"]}
    runs = []
    for seed in plan["seeds"]:
        run = chosen.folder / f"seed-{seed}"
        summary = finish_recipe("bargain-tiny", seed, run, words_of(changes), **changes)
        runs.append({"seed": seed, "seconds": summary["seconds"], "panel": panel(run, plan)})
        write(OUT, about, {"plan": plan, "held": held(runs, plan["beats_until"]), "runs": runs})


if __name__ == "__main__":
    main()
