"""Questions of reasoning-gym's: one answer each, with a second try."""

import reasoning_gym

import manyturn as mt

SIZE = {"train": 200, "validation": 40, "test": 40}


class Sums(mt.TextEnv):
    """Each split has numbers of its own in one data set."""

    instructions = "Answer the question. You may try twice."
    max_turns = 2
    first = {"train": 0, "validation": 200, "test": 240}

    def tasks(self, split):
        questions = reasoning_gym.create_dataset("chain_sum", size=300, seed=1, min_digits=2, max_digits=3)
        found = (questions[self.first[split] + i] for i in range(SIZE[split]))
        asked = [{"question": entry["question"], "answer": entry["answer"]} for entry in found]
        return [mt.Task(f"{split}/{i}", split, params) for i, params in enumerate(asked)]

    def begin(self, task, rng):
        return task.params["question"]

    def respond(self, action):
        if action.strip() == self.task.params["answer"]:
            return self.succeed("Right.")
        return self.go_on(f"Wrong. {self.task.params['question']}")

    def expert(self):
        return self.task.params["answer"]


class Overlapping(Sums):
    """A seed for each split is not enough: a question's own seed is the data set's plus its number."""

    def tasks(self, split):
        seed = ("train", "validation", "test").index(split)
        questions = reasoning_gym.create_dataset("chain_sum", size=SIZE[split], seed=seed, min_digits=2, max_digits=3)
        asked = [{"question": entry["question"], "answer": entry["answer"]} for entry in questions]
        return [mt.Task(f"{split}/{i}", split, params) for i, params in enumerate(asked)]
