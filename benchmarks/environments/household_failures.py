"""Failed episodes of the recipe household-tiny: how often they took what the task names, and what else they did.

    python -m benchmarks.environments.household_failures RUN-FOLDER

The folder is that of ``recipe_success --recipe household-tiny``. Its evaluations of trained policies are read, whose
replies are sampled; every seed is written.
"""

import argparse
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.kit.provenance import RESULTS, origin, write
from manyturn.agents.records.episode_rows import read_episodes, read_turns
from manyturn.agents.records.tables import table_in

_GOAL = re.compile(r"Your task is to: put (?:some|an?) (\w+) (?:in|on|in/on) \w+\.")
_REPEATS = 3  # visits to places that were visited before, from which on an episode counts as wandering


def episode_traits(turns: Sequence[Mapping[str, Any]]) -> list[str]:
    """Traits of an episode of the level tiny.

    Args:
        turns: its rows, in order.

    Raises:
        SystemExit: the task is of another kind than this level has.
    """
    goal = _GOAL.search(turns[0]["observation"])
    if goal is None:
        raise SystemExit(f"no task of difficulty tiny: {turns[0]['observation']!r}")
    target, actions = goal[1], [turn["action"] or "" for turn in turns]
    taken = [action.split()[1] for action in actions if action.startswith("take ")]
    visits = [action for action in actions if action.startswith("go to ")]
    listed = any(re.search(rf"\b{target} \d", turn["observation"]) for turn in turns)
    traits = {
        "took another object": any(name != target for name in taken),
        "saw the object and never took it": listed and target not in taken,
        "never saw the object": not listed,
        "took the object": target in taken,
        "wandered": len(visits) - len(set(visits)) >= _REPEATS,
    }
    return [name for name, holds in traits.items() if holds]


def failures(evaluation: Path) -> dict[str, Any]:
    """Episodes of an evaluation, those that failed, and the traits of these and of the successful ones."""
    turns_of = defaultdict[tuple[str, int], list[Mapping[str, Any]]](list)
    for turn in read_turns(table_in(evaluation, "turns")):
        turns_of[turn["task"], turn["member"]].append(turn)
    episodes = read_episodes(table_in(evaluation, "episodes"))
    counts = {True: Counter[str](), False: Counter[str]()}
    for episode in episodes:
        turns = sorted(turns_of[episode["task"], episode["member"]], key=lambda turn: turn["turn"])
        counts[bool(episode["success"])].update(episode_traits(turns))
    failed = sum(not episode["success"] for episode in episodes)
    return {
        "episodes": len(episodes),
        "failed": failed,
        "of_failed": dict(sorted(counts[False].items())),
        "of_successful": dict(sorted(counts[True].items())),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run_folder", type=Path)
    parser.add_argument("--out", type=Path, default=RESULTS / "household_failures.json")
    chosen = parser.parse_args()
    about = origin(chosen.out, ("numpy", "pyarrow"), run_folder=chosen.run_folder)
    seeds = sorted(chosen.run_folder.glob("seed-*"), key=lambda folder: int(folder.name.partition("-")[2]))
    runs = [
        {"seed": int(folder.name.partition("-")[2]), **failures(folder / "evaluation")}
        for folder in seeds
        if (folder / "evaluation" / "summary.json").is_file()
    ]
    write(chosen.out, about, {"runs": runs})
    for run in runs:
        print(f"seed {run['seed']}: {run['failed']} of {run['episodes']} failed; of these {run['of_failed']}")


if __name__ == "__main__":
    main()
