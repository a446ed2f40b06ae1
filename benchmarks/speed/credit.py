"""Speed of credit on one core: rewards, advantage and modulation of every recipe, for one large batch.

    python -m benchmarks.speed.credit

1,024 episodes of 50 turns and 0 to 19 reply tokens a turn, in groups of 8, with 20 anchor states a group. Whatever a
recipe reads of the learner (values, entropies, contributions) is there already: forward passes are not credit. A figure
is the median of CPU seconds over the repeats, after one untimed. ``gigpo-similarity`` compares the texts of anchor
states in pairs and stands apart: its time grows with the square of a group's states.
"""

import argparse
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.kit.provenance import RESULTS, origin, write
from manyturn.envs.contract.random_keys import generator
from manyturn.recipes import load_recipe, methods
from manyturn.recipes.stack import stacked
from manyturn.trainers.credit.batch.turn_batch import TurnBatch
from manyturn.trainers.credit.pipeline import CreditConfig, credit
from manyturn.trainers.recipe.config import configure

OUT = RESULTS / "credit_speed.json"
EPISODES, TURNS, GROUP, STATES = 1024, 50, 8, 20
LIMIT = 1.0  # second


def batch(columns: set[str]) -> TurnBatch:
    """A batch with these columns over turns, and over reply tokens for stages that ask for tokens."""
    rng = generator("credit speed")
    groups, turns = EPISODES // GROUP, EPISODES * TURNS
    tokens_K = rng.integers(0, 20, turns)
    group_K = np.repeat(np.arange(groups), GROUP * TURNS)
    state_K = rng.integers(0, STATES, turns)
    last_K = np.tile(np.arange(TURNS) == TURNS - 1, EPISODES)
    return TurnBatch(
        group_K=group_K,
        episode_K=np.repeat(np.arange(EPISODES), TURNS),
        turn_K=np.tile(np.arange(TURNS), EPISODES),
        parts={"outcome": last_K * rng.integers(0, 2, turns) / 2, "steps": rng.random(turns) / (2 * TURNS)},
        format_valid_K=rng.random(turns) > 0.1,
        understood_K=rng.random(turns) > 0.1,
        tokens_K=tokens_K,
        truncated_E=rng.random(EPISODES) < 0.1,
        anchor_K=state_K,
        anchor_text=tuple(f"In room {state} you see door {state % 7} and key {state % 3}." for state in state_K),
        columns={name: rng.random(turns) for name in columns},
        token_columns={name: rng.random(tokens_K.sum()) for name in columns},
        group_names={group: f"task {group}" for group in range(groups)},
    )


def credits() -> dict[str, CreditConfig]:
    """Recipe -> its way to give credit, of the recipes that have one of their own."""
    recipes = {name: load_recipe(name) for name in methods()}
    run = {"env": {"id": "manyturn/Maze-v0"}}
    return {name: configure(stacked([run, recipe])).credit for name, recipe in recipes.items() if "credit" in recipe}


def seconds(turns: TurnBatch, config: CreditConfig, repeats: int) -> float:
    """CPU seconds of one batch."""
    times, memory = [], credit(turns, config).memory
    for _ in range(repeats):
        start = time.process_time()
        memory = credit(turns, config, memory).memory
        times.append(time.process_time() - start)
    return median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, default=OUT)
    args = parser.parse_args()
    about = origin(args.out, ("numpy",))
    ways = credits()
    turns = batch({column for config in ways.values() for column in config.needs})
    figures: dict[str, float] = {}
    for name, config in ways.items():
        figures[name] = float(f"{seconds(turns, config, args.repeats):.2g}")
        mark = "  above the limit" if figures[name] > LIMIT and name != "gigpo-similarity" else ""
        print(f"{name:24}{figures[name]:8.3f} s{mark}", flush=True)
    sizes: dict[str, Any] = {"episodes": EPISODES, "turns": TURNS, "tokens": int(turns.tokens_K.sum()), "group": GROUP}
    write(args.out, about, {"repeats": args.repeats, "batch": sizes, "cpu_seconds": figures})


if __name__ == "__main__":
    main()
