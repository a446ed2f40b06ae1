"""A word puzzle whose expert knows the word, which no policy that imitates it can."""

import manyturn as mt

WORDS = "amber bacon cabin delta eagle fable giant habit ivory jolly kayak lemon mango noble ocean piano quilt".split()
WORDS += "radio salad tango ultra vivid wagon yacht zebra badge candy daisy elbow fancy grape hotel juice knife".split()


class Hangman(mt.TextEnv):
    instructions = "Find the word letter by letter. Command: guess LETTER. Six wrong guesses lose."
    max_turns = 16

    def tasks(self, split):
        words = {"train": WORDS[::2], "validation": WORDS[1::4], "test": WORDS[3::4]}[split]
        return [mt.Task(f"{split}/{word}", split, {"word": word}) for word in words]

    def begin(self, task, rng):
        self.word, self.said, self.wrong = task.params["word"], [], 0
        return self.seen()

    def seen(self):
        return " ".join(letter if letter in self.said else "_" for letter in self.word)

    def respond(self, action):
        letter = action.removeprefix("guess ")
        if action not in self.admissible():
            return self.invalid(f"Guess a new letter. {self.seen()}")
        self.said.append(letter)
        self.wrong += letter not in self.word
        if self.wrong == 6:
            return self.fail("You have lost.")
        if set(self.word) <= set(self.said):
            return self.succeed(f"It is {self.word}.")
        return self.go_on(self.seen(), found=0.1 * self.word.count(letter))

    def admissible(self):
        return [f"guess {letter}" for letter in "abcdefghijklmnopqrstuvwxyz" if letter not in self.said]

    def anchor(self):
        return (self.task.id, tuple(sorted(self.said)))

    def expert(self):
        return next(f"guess {letter}" for letter in self.word if letter not in self.said)
