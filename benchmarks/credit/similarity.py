"""Gain and cost of GiGPO's similarity where situations hardly ever come back in the same words.

    python -m benchmarks.credit.similarity

Steps of 16 tasks x 8 episodes are played by a policy that is the expert half of the time and random the other half. Of
their turns, ``grouped`` is the share that shares its anchor group with another turn, ``signal`` the share whose level
of turns is not 0; with equal anchors, and with alike texts at several thresholds. The first turn of an episode is left
out of both, since all episodes of a task begin alike. ``cpu_seconds`` is what the grouping of a step takes.

``busy_shop`` is the shop whose pages hardly ever repeat. The same episodes are played in the plain shop, whose pages
say what the same page is: ``mixed`` is the share of pairs of turns of one group that are of different pages.
"""

import argparse
import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

from benchmarks.kit.provenance import RESULTS, origin, write
from manyturn.agents.play.concurrent_episodes import gather
from manyturn.agents.play.demonstrations.scripted_policy import Scripted
from manyturn.agents.play.episode import Episode
from manyturn.envs.hosting.local.seats import open_seats
from manyturn.trainers.credit.advantages.gigpo import GigpoConfig, gigpo
from manyturn.trainers.credit.batch.turn_batch import IntK, TurnBatch, ids_of
from manyturn.trainers.credit.groups.situations import anchor_groups
from manyturn.trainers.play.rollout.rollout_batch import plan_groups, turn_batch

OUT = RESULTS / "similarity.json"
BUSY, PLAIN = f"{Path(__file__).with_name('worlds') / 'noisy_shop.py'}:BusyShop", "manyturn/Shop-v0"
WORLDS = {"busy_shop": BUSY, "support": "manyturn/Talk-Support-v0", "tutor": "manyturn/Talk-Tutor-v0", "shop": PLAIN}
THRESHOLDS = (None, 0.95, 0.9, 0.8)
TASKS, GROUP, NOISE, TURNS = 16, 8, 0.5, 30


async def played(world: str, steps: int, tasks: int = TASKS) -> list[list[Episode]]:
    """The episodes of each step."""
    async with open_seats(world, limit=64) as seats:
        split = seats.tasks("train")
        plans = [
            plan_groups([split[step * tasks + i] for i in range(tasks)], GROUP, step, "similarity")
            for step in range(steps)
        ]
        return [await gather(seats, Scripted(NOISE), plan, max_turns=TURNS) for plan in plans]


def grouped(batch: TurnBatch, threshold: float | None) -> dict[str, float]:
    """The figures of one step."""
    began = time.process_time()
    cluster_K = anchor_groups(batch, threshold)
    seconds = time.process_time() - began
    signal_K = gigpo(batch, GigpoConfig(similarity=threshold)).levels["turn"] != 0
    later_K = batch.turn_K > 0
    return {
        "grouped": float((np.bincount(cluster_K)[cluster_K] > 1)[later_K].mean()),
        "signal": float(signal_K[later_K].mean()),
        "groups": float(cluster_K.max() + 1),
        "cpu_seconds": seconds,
    }


def mixed(batch: TurnBatch, plain: TurnBatch, threshold: float | None) -> float:
    """Share of the pairs of turns of one group that are of different pages of the plain shop; 0 without a pair."""
    cluster_K, place_K = anchor_groups(batch, threshold), ids_of(plain.anchor_text or ())
    pairs, alike = _pairs(cluster_K), _pairs(np.unique(np.stack([cluster_K, place_K]), axis=1, return_inverse=True)[1])
    return 1 - alike / pairs if pairs else 0.0


def _pairs(id_K: IntK) -> int:
    """Number of pairs of equal numbers."""
    count = np.bincount(id_K.ravel())
    return int((count * (count - 1) // 2).sum())


def survey(batches: Sequence[TurnBatch], plains: Sequence[TurnBatch] = ()) -> dict[str, Any]:
    """Figures by threshold, means over the steps."""
    by_threshold: dict[str, Any] = {"turns": mean(len(batch.turn_K) for batch in batches)}
    for threshold in THRESHOLDS:
        rows = [grouped(batch, threshold) for batch in batches]
        figures = {name: mean(row[name] for row in rows) for name in rows[0]}
        if plains:
            pairs = zip(batches, plains, strict=True)
            figures["mixed"] = mean(mixed(batch, truth, threshold) for batch, truth in pairs)
        by_threshold["equal" if threshold is None else str(threshold)] = {
            name: float(f"{value:.3g}") for name, value in figures.items()
        }
    return by_threshold


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--out", type=Path, default=OUT)
    args = parser.parse_args()
    about = origin(args.out, ("numpy",))
    batches = {
        name: [turn_batch(episodes) for episodes in asyncio.run(played(world, args.steps))]
        for name, world in WORLDS.items()
    }
    surveys = {name: survey(own, batches["shop"] if name == "busy_shop" else ()) for name, own in batches.items()}
    for name, figures in surveys.items():
        for key in figures.keys() - {"turns"}:
            print(f"{name:10} {key:6} {figures[key]}")
    sizes = {"steps": args.steps, "tasks": TASKS, "group": GROUP, "noise": NOISE}
    write(args.out, about, {**sizes, "worlds": surveys})


if __name__ == "__main__":
    main()
