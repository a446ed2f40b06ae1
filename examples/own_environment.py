"""An environment of your own, from nothing to a trained agent: write it, check it, train, compare.

    python examples/own_environment.py

``manyturn new-env NAME`` writes a file to begin with; docs/environments.md has all that a class may say.
"""

from itertools import product
from pathlib import Path

import manyturn as mt

COLOURS = ("red", "blue", "green", "white")
DAYS = list(product(COLOURS, repeat=4))


class Porter(mt.TextEnv):
    """Four guests come, one after the other; at the end you hear whether all of them got through."""

    instructions = "Open the door that each guest names. Command: open COLOUR."
    max_turns = 6

    def tasks(self, split):  # no day is in two splits
        share = {"train": (0, 1), "validation": (2,), "test": (3,)}[split]
        return [mt.Task(f"{split}/{i}", split, {"day": day}) for i, day in enumerate(DAYS) if i % 7 % 4 in share]

    def begin(self, task, rng):  # all state is set here; what is random in an episode comes from rng
        self.waiting, self.lost = list(task.params["day"]), 0
        return f"Guest: {self.waiting[0]}."

    def respond(self, action):
        if action not in self.admissible():
            return self.invalid(f"Guest: {self.waiting[0]}.")
        self.lost += action != self.expert()
        self.waiting.pop(0)
        if self.waiting:
            return self.go_on(f"Guest: {self.waiting[0]}.")
        return self.fail(f"{self.lost} stayed outside.") if self.lost else self.succeed("All are inside.")

    def anchor(self):  # when two attempts at a day are in the same situation
        return (self.task.id, len(self.waiting))

    def admissible(self):  # what a random policy chooses from
        return [f"open {colour}" for colour in COLOURS]

    def expert(self):  # demonstrations, and an upper bound
        return f"open {self.waiting[0]}"


def main(steps: int = 8, out: str = "runs/porter") -> dict:
    env, folder = f"{Path(__file__).resolve()}:Porter", Path(out)
    report = mt.check(env, samples=2)
    if not report.passed:
        raise SystemExit(str(report))
    run = mt.train(
        env,
        recipe="gigpo",
        out=folder / "run",
        steps=steps,
        rollout={"tasks": 8, "group": 8},
        evaluation={"limit": 48},
        learner={"lr": 1e-3},
        **{"warmup.episodes": 64, "warmup.max_updates": 40, "warmup.check_every": 10, "warmup.until_success": 0.2},
    )
    run.show()
    mt.evaluate("random", env, limit=48, out=folder / "by-random")
    mt.evaluate(run.folder, limit=48, out=folder / "by-trained")
    result = mt.compare(folder / "by-random", folder / "by-trained")
    result.show()
    return result


if __name__ == "__main__":
    main()
