"""Rewards that are paid for nothing: the scorecard of our families at their smallest, and of other projects' worlds.

    python -m benchmarks.environments.reward_scorecard

Plays the probes of ``manyturn check --audit`` on held-out tasks. Of each world the file has the references, for each
kind of probe the one that earns most, and how many held-out tasks have the text of a training task. Worlds in
containers need an engine and the image of ``manyturn images build``. They, and packages that are absent, are named as
not probed.
"""

import argparse
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.environments.reward_scorecard_table import KINDS, OUT
from benchmarks.kit.provenance import origin, write
from manyturn.agents.scorecard.scorecard import Scorecard, scorecard
from manyturn.containers.engine.images import NAME

_TASK = 'schema_version = "1.4"\n[task]\nname = "made/sum"\n[environment]\nnetwork_mode = "no-network"\n'
_SLOW = 3  # tasks of a world in containers


class World(NamedTuple):
    """An environment on the scorecard; ``slow`` ones play few tasks."""

    name: str
    env: str
    args: Mapping[str, Any]
    slow: bool = False


def worlds(folder: Path) -> list[World]:
    """Our families at their smallest level, then other projects' worlds.

    Args:
        folder: for the tasks of Harbor.
    """
    easiest = ("Maze", "Treasure", "Cooking", "Sokoban", "Wordle", "Countdown", "Blocksworld", "Search")
    levels = {**dict.fromkeys(("Household", "Shop", "Desk", "Talk-Booking"), "tiny"), **dict.fromkeys(easiest, "easy")}
    levels |= {"Treasure": "coin", "Talk-Support": "easy", "Talk-Tutor": "easy"}
    own = [World(f"{name} {level}", f"manyturn/{name}-v0", {"difficulty": level}) for name, level in levels.items()]
    games = ("FrozenLake-v0-random", "GuessTheNumber-v0", "Mastermind-v0")
    sets = ("leg_counting", "gcd", "course_schedule", "circuit_logic", "aiw")
    return [
        *own,
        World("Software easy", "manyturn/Software-v0", {"difficulty": "easy", "max_turns": 10}, slow=True),
        *(World(f"TextArena {name}", f"textarena:{name}", {}) for name in games),
        *(World(f"reasoning-gym {name}", f"reasoning-gym:{name}", {}) for name in sets),
        World("Harbor folder", f"harbor:{harbor_folder(folder)}", {"max_turns": 4}, slow=True),
    ]


def harbor_folder(folder: Path) -> Path:
    """Six tasks of Harbor by split, each with a number to be written into a file."""
    for split, number in ((split, number) for split in ("train", "test") for number in range(3)):
        task, right = folder / split / f"sum-{number}", {"train": 40, "test": 70}[split] + 3 * number
        files = {
            "task.toml": _TASK,
            "instruction.md": f"Write the sum of {right - 17} and 17 into answer.txt.\n",
            "environment/Dockerfile": f"FROM {NAME}\nWORKDIR /app\n",
            "tests/test.sh": f'#!/bin/bash\n[ "$(cat /app/answer.txt)" = {right} ]\n'
            "echo $((1 - $?)) > /logs/verifier/reward.txt\n",
            "solution/solve.sh": f"#!/bin/bash\necho {right} > answer.txt\n",
        }
        for name, text in files.items():
            (task / name).parent.mkdir(parents=True, exist_ok=True)
            (task / name).write_text(text)
    return folder


def row(card: Scorecard) -> dict[str, Any]:
    """A world's line: references, and of each kind the probe that earns most."""
    references = {name: _figures(card, name) for name in ("expert", "random") if any(r.name == name for r in card.rows)}
    best = {}
    for kind in KINDS:
        rows = [one for one in card.rows if one.kind == kind and one.value.n_tasks]
        top = max(rows, key=lambda one: (one.success.mean if one.success else 0.0, one.value.mean), default=None)
        best[kind] = None if top is None else {"probe": top.name, **_figures(card, top.name)}
    train = next(iter(card.overlaps), None)
    return {
        **{"tasks": card.facts["tasks"], "split": card.facts["split"], **references, "kinds": best},
        **{"probes": len(card.rows) - len(references), "paid": card.paid, "paid_in_part": card.paid_in_part},
        "errors": sum(one.errors for one in card.rows),
        "overlap": train and {name: train[name] for name in ("texts", "tasks", "own", "same", "long", "solved_alike")},
    }


def _figures(card: Scorecard, name: str) -> dict[str, Any]:
    plain = card[name].plain()
    return {"success": plain["success"], "return": plain["return"], "verdict": plain["verdict"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=40)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--out", type=Path, default=OUT)
    args = parser.parse_args()
    about = origin(args.out, ("gymnasium", "numpy", "textarena", "reasoning-gym"))
    rows, lacking = dict[str, Any](), dict[str, str]()
    with tempfile.TemporaryDirectory() as folder:
        for world in worlds(Path(folder)):
            if args.only and not any(word in world.name for word in args.only):
                continue
            began = time.perf_counter()
            try:
                card = scorecard(world.env, world.args, _SLOW if world.slow else args.samples)
            except Exception as error:  # a package or an engine that is absent costs its own line and no other
                lacking[world.name] = str(error).replace(folder, "FOLDER")[:300]
                print(f"{world.name}: {lacking[world.name]}", flush=True)
                continue
            env = world.env.replace(folder, "FOLDER")
            rows[world.name] = {"env": env, "args": world.args, **row(card)}
            rows[world.name]["seconds"] = round(time.perf_counter() - began, 1)
            paid = f"paid {card.paid or '-'}, in part {card.paid_in_part or '-'}"
            print(f"{world.name:32}{rows[world.name]['seconds']:6.1f} s  {paid}", flush=True)
    write(args.out, about, {"samples": args.samples, "worlds": rows, "not_probed": lacking})


if __name__ == "__main__":
    main()
