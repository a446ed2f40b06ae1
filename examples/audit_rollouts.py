"""Audit of the credit in your own trainer: its rollouts, and a function that plays on from the middle of one.

    python examples/audit_rollouts.py [CONTINUATIONS]

A trainer such as TRL or verl stores the rewards and replies of a rollout. The audit also needs a way to continue it
from the middle. ``replay`` repeats the first actions of a rollout in a fresh environment and then asks the policy
again. Here the policy is a function; with a model it is a request to the engine that made the rollouts. These mazes
draw no chance: where yours do, give ``replies`` too, as docs/audit-your-trainer.md shows.
"""

import sys
from typing import Any

import numpy as np

import manyturn as mt
import manyturn.credit as mc

ENV, TASKS, GROUP, SEED = "manyturn/Maze-v0", 8, 6, 7


def choose(info: dict, rng: np.random.Generator) -> str:
    """Your policy: here one that mostly walks on where it has not been."""
    actions = [action for action in info["admissible"] if not action.startswith("go")] or info["admissible"]
    return actions[int(rng.integers(len(actions)))]


def play(env, task: str, repeated: list[str], rng: np.random.Generator) -> tuple[list[str], list[str], list[float]]:
    """An episode that begins with repeated actions: its actions, situations and rewards."""
    _, info = env.reset(seed=SEED, options={"task": task})
    actions, anchors, rewards, over = list[str](), list[str](), list[float](), False
    while not over:
        anchors.append(str(info["anchor"]))
        actions.append(repeated[len(actions)] if len(actions) < len(repeated) else choose(info, rng))
        _, reward, terminated, truncated, info = env.step(actions[-1])
        rewards.append(float(reward))
        over = terminated or truncated
    return actions, anchors, rewards


def main(continuations: int = 32) -> mc.RolloutAudit:
    env: Any = mt.make(ENV).unwrapped
    tasks = [task.id for task in env.tasks("train")[:TASKS]]
    plans = [(task, member) for task in tasks for member in range(GROUP)]
    episodes = [play(env, task, [], np.random.default_rng([place, 0])) for place, (task, _) in enumerate(plans)]
    rollouts = [
        mc.Rollout(group=task, rewards=rewards, anchors=anchors)
        for (task, _), (_, anchors, rewards) in zip(plans, episodes, strict=True)
    ]

    def replay(rollout: int, turns: int, number: int) -> float:
        """The rewards of one continuation, after so many repeated turns; its number is its randomness."""
        task, actions = plans[rollout][0], episodes[rollout][0]
        _, _, rewards = play(env, task, actions[:turns], np.random.default_rng([number, 1]))
        return sum(rewards[turns:])

    return mc.audit_rollouts(rollouts, replay, methods=["grpo", "rloo", "gigpo"], continuations=continuations)


if __name__ == "__main__":
    print(main(*map(int, sys.argv[1:])))
