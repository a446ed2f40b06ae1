"""Success on the first level of a desk without looking anything up: the floor that a learnt policy has to beat.

    python -m benchmarks.environments.desk_baselines

One policy makes the call that the ticket asks for and closes, so that it refuses nothing (``as asked``). Beside it are
chance among the listed calls and the expert. The tasks are those on which the recipe is measured, and the figures the
share of them that are served as the rules want.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from statistics import fmean

from benchmarks.kit.provenance import RESULTS, origin, write
from manyturn.envs.contract.random_keys import generator
from manyturn.envs.contract.registration.builtin_envs import register_all
from manyturn.envs.contract.registration.env_registry import make
from manyturn.envs.contract.tasks.panel import make_panel
from manyturn.envs.desk.env import Desk
from manyturn.envs.desk.solution import solution_of
from manyturn.envs.tools.calls import call_text
from manyturn.recipes import load_recipe

OUT = RESULTS / "desk_floors.json"
Policy = Callable[[Desk], str]


def chance(env: Desk) -> str:
    """One of the listed calls."""
    calls = env.admissible()
    return calls[int(generator("floors", env.task.id, env.turn).integers(len(calls)))]


def as_asked(env: Desk) -> str:
    """The call that the ticket asks for, whatever the rules say, and then the end of the work."""
    [errand] = solution_of(env.task).errands
    return call_text("close") if env.turn else call_text(errand.call.name, **errand.call.arguments)


POLICIES: dict[str, Policy] = {"chance": chance, "as asked": as_asked, "expert": Desk.expert}


def served(env: Desk, task: str, policy: Policy) -> bool:
    """True if an episode ends as the rules want."""
    env.reset(seed=0, options={"task": task})
    while True:
        _, _, terminated, truncated, info = env.step(policy(env))
        if terminated or truncated:
            return bool(info["success"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=OUT)
    args = parser.parse_args()
    about = origin(args.out, ("gymnasium", "numpy"))
    register_all()
    recipe = load_recipe("desk-tiny")
    env = make(recipe["env"]["id"], split="test", **recipe["env"]["args"]).unwrapped
    assert isinstance(env, Desk)
    panel = make_panel(env.tasks("test"), recipe["env"]["id"], "test", recipe["evaluation"]["limit"])
    rows = [
        {"policy": name, "success": fmean(served(env, task, policy) for task in panel.tasks)}
        for name, policy in POLICIES.items()
    ]
    for row in rows:
        print(f"{row['policy']:12}{row['success']:8.3f}")
    write(args.out, about, {"panel": {"hash": panel.hash, "n_tasks": len(panel.tasks)}, "rows": rows})


if __name__ == "__main__":
    main()
