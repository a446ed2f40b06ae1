"""Speed of the environments on one core: making tasks, reset, step with the list of commands, snapshot, restore.

    python -m benchmarks.speed.environments                 all environments, about two minutes
    python -m benchmarks.speed.environments --only Household --repeats 3

A random policy plays more tasks than any cache holds, once untimed to fix the actions; then the same actions are timed
in blocks, so that neither the policy nor the clock is in the figures. A figure is the median over the repeats of
microseconds for each call: CPU time of this process, and wall time. Other projects' environments are measured beside
ours where they are installed; those that are absent or fail are named.
"""

import argparse
import gc
import random
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.kit.provenance import RESULTS, origin, write
from benchmarks.speed.environments import peers
from manyturn.envs.contract.env.text_env import TextEnv
from manyturn.envs.contract.registration.builtin_envs import register_all
from manyturn.envs.contract.registration.env_registry import env_ids, make
from manyturn.envs.contract.tasks.task import Task

OUT = RESULTS / "env_speed.json"
TASKS = 96
VARIANTS: dict[str, list[dict[str, Any]]] = {
    "manyturn/Household-v0": [{"difficulty": d} for d in ("tiny", "easy", "medium", "hard")],
    "manyturn/Laboratory-v0": [{"difficulty": d} for d in ("tiny", "small", "medium", "long")],
}
COLUMNS = ("generate", "reset", "step", "snapshot", "restore")


def timed(call: Callable[[], int]) -> tuple[float, float]:
    """CPU and wall microseconds for each of the calls that ``call`` says it made."""
    cpu, wall = time.process_time(), time.perf_counter()
    count = max(call(), 1)
    return 1e6 * (time.process_time() - cpu) / count, 1e6 * (time.perf_counter() - wall) / count


def play(env: TextEnv, tasks: list[Task]) -> tuple[list[list[str]], list[bytes]]:
    """A random policy's actions on each task, and a snapshot from the middle of each episode."""
    episodes, snapshots = [], []
    for number, task in enumerate(tasks):
        rng, actions = random.Random(number), []
        _, info = env.reset(seed=number, options={"task": task})
        snapshot, ended = env.snapshot(), False
        while not ended:
            listed = info.get("admissible")
            actions.append(rng.choice(listed) if listed else env.action_space.sample())
            *_, terminated, truncated, info = env.step(actions[-1])
            ended = terminated or truncated
            if not ended and len(actions) <= env.max_turns // 2:
                snapshot = env.snapshot()
        episodes.append(actions)
        snapshots.append(snapshot)
    return episodes, snapshots


def measure(name: str, kwargs: dict[str, Any], repeats: int) -> dict[str, Any]:
    """Medians for one environment: column -> [CPU, wall] microseconds."""
    env = make(name, **kwargs).unwrapped
    if not isinstance(env, TextEnv):
        raise TypeError(f"{name} is no TextEnv")
    env.action_space.seed(0)
    pool = env.tasks("train")
    count = min(TASKS, len(pool))
    tasks = [pool[i] for i in range(count)]
    episodes, snapshots = play(env, tasks)
    figures: dict[str, list[tuple[float, float]]] = {column: [] for column in COLUMNS}
    gc.collect()
    for repeat in range(repeats):
        # Other tasks each time, so that nothing can have been remembered.
        first = (1 + repeat) * count % max(len(pool) - count, 1)
        figures["generate"].append(timed(lambda first=first: len(pool[first : first + count])))
        figures["reset"].append(timed(lambda: sum(1 for t in tasks if env.reset(seed=1, options={"task": t}))))
        figures["step"].append(steps(env, tasks, episodes))
        figures["snapshot"].append(timed(lambda: sum(1 for _ in range(count) if env.snapshot())))
        figures["restore"].append(restores(env, snapshots))
    medians = {k: [round(median(x), 2) for x in zip(*rows, strict=True)] for k, rows in figures.items()}
    label = " ".join([name, *(str(value) for value in kwargs.values())])
    listed = env.admissible() is not None
    return {"environment": label, "microseconds": medians, "lists_commands": listed, "turns": sum(map(len, episodes))}


def steps(env: TextEnv, tasks: list[Task], episodes: list[list[str]]) -> tuple[float, float]:
    """Microseconds for a step, resets not counted."""
    cpu = wall = 0.0
    for task, actions in zip(tasks, episodes, strict=True):
        env.reset(seed=1, options={"task": task})
        start_cpu, start_wall = time.process_time(), time.perf_counter()
        for action in actions:
            _, _, terminated, truncated, _ = env.step(action)
            if terminated or truncated:
                break
        cpu, wall = cpu + time.process_time() - start_cpu, wall + time.perf_counter() - start_wall
    count = sum(map(len, episodes))
    return 1e6 * cpu / count, 1e6 * wall / count


def restores(env: TextEnv, snapshots: list[bytes]) -> tuple[float, float]:
    """Microseconds for going back to a snapshot of the task being played, as branching from a turn does."""
    rounds = []
    for snapshot in snapshots:
        env.restore(snapshot)
        rounds.append(timed(lambda snapshot=snapshot: sum(1 for _ in range(8) if env.restore(snapshot) is None)))
    cpu, wall = zip(*rounds, strict=True)
    return sum(cpu) / len(cpu), sum(wall) / len(wall)


def show(rows: list[dict[str, Any]], others: list[dict[str, Any]]) -> None:
    """Print both tables."""
    print(f"{'CPU microseconds a call':<34}" + "".join(f"{c:>10}" for c in COLUMNS) + f"{'steps/s':>11}")
    for row in rows:
        figures = row["microseconds"]
        cells = "".join(f"{figures[c][0]:>10.1f}" for c in COLUMNS)
        print(f"{row['environment']:<34}{cells}{1e6 / figures['step'][0]:>11,.0f}")
    for row in others:
        if "step" in row:
            # Wall time: some of these work in another process, whose CPU time is not seen here.
            print(f"{row['environment']:<34}{'':>10}{row['reset'][1]:>10.1f}{row['step'][1]:>10.1f}{'':>20}", end="")
            print(f"{1e6 / row['step'][1]:>11,.0f}")
        else:
            print(f"{row['environment']:<34}  {row['note']}")


IN_A_BROWSER = ("manyturn/MiniWoB-v0", "manyturn/ShopPages-v0")  # browser.py measures them


def main() -> None:
    parser = argparse.ArgumentParser(description="Speed of the environments on one core.")
    parser.add_argument("--only", default="", help="measure only ids that contain this; leaves out other projects")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    about = origin(options.out, ("gymnasium", "numpy", *peers.PACKAGES))
    register_all()
    rows: list[dict[str, Any]] = []
    for name in env_ids():
        if options.only not in name or name in IN_A_BROWSER:
            continue
        for kwargs in VARIANTS.get(name, [{}]):
            try:
                rows.append(measure(name, kwargs, options.repeats))
            except (ImportError, TypeError, ValueError) as error:
                print(f"{name}: not measured: {type(error).__name__}: {error}")
    others = [] if options.only else peers.measure_all(options.repeats)
    show(rows, others)
    write(options.out, about, {"repeats": options.repeats, "tasks": TASKS, "rows": rows, "others": others})


if __name__ == "__main__":
    main()
