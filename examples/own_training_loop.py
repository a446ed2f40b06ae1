"""Our credit in a loop of yours: a table of logits learns the way through a maze, by REINFORCE and nothing else.

    python examples/own_training_loop.py [ADVANTAGE] [STEPS]

The loop knows nothing of manyturn's trainer, and needs no torch. ADVANTAGE is the name of one that needs no model, such
as gigpo (the default), grpo or rloo.
"""

import sys

import numpy as np

import manyturn as mt
import manyturn.credit as mc

GROUP, RATE = 8, 2.0
Turn = tuple[str, np.ndarray, int, float]  # anchor, probabilities, the action's number, reward


def play(env, table: dict[str, np.ndarray], task: str, rng: np.random.Generator) -> list[Turn]:
    """One attempt at the maze; situations that are new get logits of 0."""
    _, info = env.reset(options={"task": task})
    turns, over = list[Turn](), False
    while not over:
        anchor, actions = info["anchor"], info["admissible"]
        logits = table.setdefault(anchor, np.zeros(len(actions)))
        probabilities = np.exp(logits - logits.max())
        probabilities /= probabilities.sum()
        chosen = int(rng.choice(len(actions), p=probabilities))
        _, reward, terminated, truncated, info = env.step(actions[chosen])
        turns.append((anchor, probabilities, chosen, float(reward)))
        over = terminated or truncated
    return turns


def credited(group: list[list[Turn]], config: mc.CreditConfig) -> mc.Credit:
    """Credit of a group: the library needs the task, and the reward and situation of each turn."""
    return mc.credit_rollouts(
        [
            mc.Rollout(group="the maze", rewards=[turn[3] for turn in turns], anchors=[turn[0] for turn in turns])
            for turns in group
        ],
        config,
    )


def main(advantage: str = "gigpo", steps: int = 40) -> list[float]:
    env = mt.make("manyturn/Maze-v0", difficulty="easy")
    task = env.unwrapped.tasks("train")[0].id
    config, table, rng = mc.CreditConfig(advantage=advantage), dict[str, np.ndarray](), np.random.default_rng(0)
    lengths = list[float]()
    for step in range(1, steps + 1):
        group = [play(env, table, task, rng) for _ in range(GROUP)]
        earned = credited(group, config)
        turns = [turn for attempt in group for turn in attempt]
        for (anchor, probabilities, chosen, _), advantage_of_turn in zip(turns, earned.advantage_K, strict=True):
            gradient = -probabilities
            gradient[chosen] += 1.0  # of the action's log-probability
            table[anchor] = table[anchor] + RATE / GROUP * advantage_of_turn * gradient
        lengths.append(len(turns) / GROUP)
        success = np.mean([attempt[-1][3] > 0 for attempt in group])
        print(f"step {step:2}  success {success:.2f}  turns {lengths[-1]:4.1f}")
    return lengths


if __name__ == "__main__":
    main(*sys.argv[1:2], *map(int, sys.argv[2:3]))
