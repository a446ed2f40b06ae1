from itertools import combinations, product

import manyturn as mt

COLOURS, SHAPES = ("red", "green", "blue"), ("ball", "cube", "ring")
WORDS = (*COLOURS, *SHAPES)
THINGS = [f"{colour} {shape}" for colour, shape in product(COLOURS, SHAPES)]


def telling(things, meant):
    """Words that fit what is meant and nothing else."""
    others = {word for thing in things if thing != meant for word in thing.split()}
    return [word for word in meant.split() if word not in others]


PAIRS = [(things, meant) for things in combinations(THINGS, 3) for meant in things if telling(things, meant)]
ROUNDS = sorted(({"things": things, "meant": meant} for things, meant in PAIRS), key=mt.digest)


class NameIt(mt.TextEnv):
    instructions = (
        "Two play. The speaker says one word, a colour or a shape, that tells the listener which thing is meant. "
        "The listener then says: pick COLOUR SHAPE."
    )
    roles = ("speaker", "listener")
    part_names = ("speaker.telling",)  # the name before the dot says whose it is; the outcome belongs to both
    max_turns = 4

    def tasks(self, split):  # no round is in two splits
        chosen = {"train": ROUNDS[::2], "validation": ROUNDS[1::4], "test": ROUNDS[3::4]}[split]
        return [mt.Task(f"{split}/{i}", split, values) for i, values in enumerate(chosen)]

    def begin(self, task, rng):
        self.things, self.meant, self.word = task.params["things"], task.params["meant"], None
        return f"You are the speaker. Meant: {self.meant}. Things: {', '.join(self.things)}."

    def role(self):  # who reads the observation and acts next
        return "speaker" if self.word is None else "listener"

    def respond(self, action):
        if action not in self.admissible():
            return self.invalid(f"Say one of: {', '.join(self.admissible())}.")
        if self.word is None:
            self.word = action
            return self.go_on(f"You are the listener. The speaker says {action}. Things: {', '.join(self.things)}.")
        earned = {"speaker.telling": 0.5 if self.word in telling(self.things, self.meant) else 0.0}
        return self.succeed("Right.", **earned) if action == f"pick {self.meant}" else self.fail("Wrong.", **earned)

    def admissible(self):  # what a random policy chooses from
        return list(WORDS) if self.word is None else [f"pick {thing}" for thing in self.things]

    def expert(self):  # plays both roles, each by what it may know
        if self.word is None:
            return telling(self.things, self.meant)[0]
        return f"pick {next((thing for thing in self.things if self.word in thing.split()), self.things[0])}"
