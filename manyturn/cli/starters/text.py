from itertools import permutations

import manyturn as mt

ANIMALS = "ant bee cat dog eel fox gnu".split()
ROWS = sorted((row for row in permutations(ANIMALS, 5) if list(row) != sorted(row)), key=mt.digest)


class AnimalRow(mt.TextEnv):
    instructions = "Put the animals in alphabetical order. Command: move N, which moves the Nth one place to the right."

    def tasks(self, split):  # no row is in two splits
        rows = {"train": ROWS[::2], "validation": ROWS[1::4], "test": ROWS[3::4]}[split]
        return mt.GeneratedTasks(lambda i: mt.Task(f"{split}/{i}", split, {"row": rows[i]}), len(rows), f"{split}/")

    def begin(self, task, rng):  # everything random inside an episode comes from rng; here nothing is
        self.row = list(task.params["row"])
        return " ".join(self.row)

    def respond(self, action):
        if action not in self.admissible():
            return self.invalid(f"There is no such command. {' '.join(self.row)}")
        self.row.insert(int(action[-1]), self.row.pop(int(action[-1]) - 1))
        return self.succeed("Done.") if self.row == sorted(self.row) else self.go_on(" ".join(self.row))

    def admissible(self):  # what a random policy chooses from
        return ["move 1", "move 2", "move 3", "move 4"]

    def expert(self):  # gives demonstrations, and an upper bound
        return next(f"move {n}" for n in range(1, 5) if self.row[n - 1] > self.row[n])
