"""Speed of the desks on one core, and what policies that know nothing of a task achieve.

    python -m benchmarks.speed.environments.desk          two minutes, no downloads

A reset is of a task that has been made, as for all members of a group but the first; that of a new one stands apart. A
tool call is timed alone and as a turn, list of commands, anchor and progress included. The final reward is the whole
turn that closes an episode in which the expert has done everything. A figure is the median of CPU milliseconds of this
process over single calls (resets in blocks), difficulty ``medium``, 500 customers.

Floors are shares of test tasks: ``nothing`` closes at once; ``one refusal`` names the same rule at once in every task,
the best such rule; ``random`` draws admissible commands; ``expert`` proves that the tasks can be done.
"""

import argparse
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from statistics import median

from benchmarks.kit.provenance import RESULTS, origin, write
from manyturn.envs.contract.random_keys import generator
from manyturn.envs.desk.desks.packs import PACKS
from manyturn.envs.desk.env import Desk
from manyturn.envs.desk.task_shapes import LEVELS
from manyturn.envs.tools.calls import call_text

OUT = RESULTS / "desk_speed.json"
TASKS, PLAYED, _BLOCK = 300, 300, 20
# What is measured, and its limit.
ROWS: dict[str, float | None] = {
    "reset": 1.0,
    "reset, new task": None,
    "tool call": 0.05,
    "turn with a tool call": None,
    "final reward": 2.0,
}
Policy = Callable[[Desk], str]


def calls(env: Desk) -> dict[str, float]:
    """Name of a call -> median CPU milliseconds."""
    times, pool = defaultdict[str, list[float]](list), env.tasks("train")
    ids = [pool[number].id for number in range(TASKS)]

    def timed(name: str, call: Callable[[], object], count: int = 1) -> None:
        start = time.process_time_ns()
        call()
        times[name].append((time.process_time_ns() - start) / 1e6 / count)

    def resets(first: int) -> None:
        for number in range(first, first + _BLOCK):
            env.reset(seed=number, options={"task": ids[number]})

    for seed in range(TASKS):
        timed("reset, new task", lambda seed=seed: env.reset(seed=10_000 + seed))
    for name in ("to remember the tasks", "reset"):
        for first in range(0, TASKS, _BLOCK):
            timed(name, lambda first=first: resets(first), _BLOCK)
    for task in ids:
        env.reset(seed=0, options={"task": task})
        done = []
        while '"close"' not in (action := env.expert()):
            timed("turn with a tool call", lambda action=action: env.step(action))
            done.append(action)
        timed("final reward", lambda action=action: env.step(action))
        env.reset(seed=0, options={"task": task})
        for action in done:
            timed("tool call", lambda action=action: env._toolset.answer(action))
    return {name: round(median(times[name]), 4) for name in ROWS}


def success(env: Desk, policy: Policy) -> float:
    """The share of test tasks in which a policy succeeds."""
    won = 0
    for task in env.tasks("test")[:PLAYED]:
        _, info = env.reset(seed=0, options={"task": task})
        while "success" not in info:
            *_, info = env.step(policy(env))
        won += info["success"]
    return won / PLAYED


def floors(env: Desk) -> dict[str, float]:
    """Policy -> share of test tasks in which it succeeds."""
    rng = generator("desk floors", env.difficulty)

    def by_random_policy(env: Desk) -> str:
        listed = env.admissible()
        return listed[int(rng.integers(len(listed)))]

    rules = [rule.name for rule in PACKS[env.task.params["pack"]].rules]
    refusals = [success(env, lambda _, rule=rule: call_text("close", answer=rule)) for rule in rules]
    return {
        "nothing": success(env, lambda _: call_text("close")),
        "one refusal": max(refusals),
        "random": success(env, by_random_policy),
        "expert": success(env, Desk.expert),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Speed of the desks on one core, and their floors.")
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    about = origin(options.out, ("gymnasium", "numpy"))
    speed = {pack: calls(Desk(pack=pack, difficulty="medium")) for pack in PACKS}
    print(f"{'CPU ms':24}{'limit':>8}" + "".join(f"{pack:>10}" for pack in speed))
    for name, limit in ROWS.items():
        figures = "".join(f"{shares[name]:>10.4f}" for shares in speed.values())
        print(f"{name:24}{limit or '-':>8}{figures}")
    shares: dict[str, dict[str, float]] = {}
    for pack in PACKS:
        for difficulty in LEVELS:
            env = Desk(pack=pack, difficulty=difficulty)
            env.reset(seed=0)
            shares[f"{pack} {difficulty}"] = floors(env)
            print(f"{pack} {difficulty}", shares[f"{pack} {difficulty}"], flush=True)
    write(options.out, about, {"CPU ms": speed, "limits": ROWS, "share of test tasks": {"tasks": PLAYED, **shares}})


if __name__ == "__main__":
    main()
