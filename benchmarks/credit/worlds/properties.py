"""Small worlds in which it matters which turn gets the credit; each isolates one property.

Most ask for one skill: the first observation says which colour belongs to which word, and later on a word asks for its
colour. A tiny decoder learns that in seconds, chance does not get far among eight colours, and what tells
the worlds apart is how the outcome hangs on the turns.
"""

import json
from abc import abstractmethod
from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from functools import cache
from itertools import permutations, product
from typing import Any, ClassVar

import numpy as np

from manyturn.envs.contract.env.text_env import TextEnv
from manyturn.envs.contract.env.turn import Turn
from manyturn.envs.contract.random_keys import generator
from manyturn.envs.contract.tasks.task import Task, split_of

COLOURS = ("red", "blue", "green", "white", "black", "brown", "pink", "grey")


class CreditWorld(TextEnv):
    """Words that ask for colours, one after the other.

    Attributes:
        words: those that have a colour; the params of a task hold ``colours``, one for each.
        verb: what stands before a colour in a command.
        done: how far the episode is; it decides which word asks.
    """

    words: ClassVar[tuple[str, ...]]
    verb: ClassVar[str]
    part_names = ()

    @classmethod
    def problems(cls) -> Iterator[dict[str, Any]]:
        """The params of all tasks, no two alike."""
        return ({"colours": list(colours)} for colours in permutations(COLOURS, len(cls.words)))

    @property
    @abstractmethod
    def asking(self) -> str:
        """The word that asks now."""

    @property
    @abstractmethod
    def goal(self) -> int:
        """The value of ``done`` at the end."""

    @classmethod
    @cache
    def _by_split(cls) -> dict[str, list[Task]]:
        """The problems, each in the split that its content belongs to; neighbours in the listing are parted."""
        shares: dict[str, list[Task]] = defaultdict(list)
        for number, params in enumerate(cls.problems()):
            split = split_of(Task("", "", params).content)
            shares[split].append(Task(f"{split}/{number}", split, params))
        return {split: [tasks[i] for i in generator(split).permutation(len(tasks))] for split, tasks in shares.items()}

    def tasks(self, split: str) -> Sequence[Task]:
        return self._by_split()[split]

    def begin(self, task: Task, rng: np.random.Generator) -> str:
        self.done = 0
        pairs = zip(self.words, task.params["colours"], strict=True)
        return f"{' '.join(f'{word}: {colour}.' for word, colour in pairs)} {self.asking}?"

    def right_colour(self) -> str | None:
        """The colour that is asked for; None if any will do."""
        asked_for = self.asking in self.words
        return self.task.params["colours"][self.words.index(self.asking)] if asked_for else None

    def admissible(self) -> list[str]:
        return [f"{self.verb} {colour}" for colour in COLOURS]

    def anchor(self) -> Hashable:
        return (self.task.id, self.done)

    def progress(self) -> float:
        return self.done / self.goal

    def expert(self) -> str:
        return f"{self.verb} {self.right_colour() or COLOURS[0]}"

    def save(self) -> bytes:
        return json.dumps(self.done).encode()

    def load(self, data: bytes) -> None:
        self.done = json.loads(data)


class Tempting(CreditWorld):
    """Fit four pieces and hand the work in; polishing pays every time and brings nothing nearer.

    Isolates step rewards that mislead. Fitting a piece pays 0.1 and is what is wanted, polishing pays 0.5 and is not:
    to polish until the turns are over earns 5.0, plain honest work 1.4. Who adds up all rewards learns never to hand
    in; a gate on the outcome (G-RA) lets polishing count only in work that was finished, so that finishing stays best.
    """

    instructions = "Fit the pieces as told, then hand in. Commands: fit COLOUR, polish, hand in."
    part_names = ("fit", "polish")
    words, verb = ("Base", "Frame", "Wheel", "Lid"), "fit"
    goal = 4
    max_turns = 10

    @property
    def asking(self) -> str:
        return self.words[self.done] if self.done < self.goal else "Done"

    def respond(self, action: str) -> Turn:
        if action not in self.admissible():
            return self.invalid(f"You cannot. {self.asking}?")
        if action == "hand in":
            return self.succeed("Complete.") if self.done == self.goal else self.fail("Incomplete.")
        if action == "polish":
            return self.go_on(f"It shines. {self.asking}?", polish=0.5)
        if action != self.expert():
            return self.go_on(f"No. {self.asking}?")
        self.done += 1
        return self.go_on(f"It fits. {self.asking}?", fit=0.1)

    def admissible(self) -> list[str]:
        return [*super().admissible(), "polish", "hand in"]

    def expert(self) -> str:
        return super().expert() if self.done < self.goal else "hand in"


class Long(CreditWorld):
    """Answer sixteen signs with one and the same colour; three answers may be wrong, and only the end pays.

    Isolates length without reward. The outcome is one bit after sixteen turns or more, and all of them take part in it:
    a little more certainty at each is a lot more success, and a policy that grows certain of something wrong early has
    nothing that would tell it. This is where holding entropy near its history (EPO) should matter.
    """

    instructions = "Answer every sign with the colour that was told. Command: show COLOUR."
    words, verb = ("Answer",), "show"
    goal = 16
    max_turns = 19

    @classmethod
    def problems(cls) -> Iterator[dict[str, Any]]:
        signs = ("Star", "Moon", "Sun", "Rain")
        for params, number in product(super().problems(), range(250)):
            drawn = generator("signs", params["colours"], number).integers(len(signs), size=cls.goal)
            yield {**params, "signs": [signs[sign] for sign in drawn]}

    @property
    def asking(self) -> str:
        return self.task.params["signs"][self.done]

    def right_colour(self) -> str:
        return self.task.params["colours"][0]

    def respond(self, action: str) -> Turn:
        if action not in self.admissible():
            return self.invalid(f"{self.asking}?")
        self.done += action == self.expert()
        return self.go_on(f"{self.asking}?") if self.done < self.goal else self.succeed("Rest.")


class Repeated(CreditWorld):
    """Climb a ladder of four rungs by naming each one's colour; a wrong name slides back to the ground.

    Isolates states that come again. A task has four states, and an episode of twelve turns passes through the lower
    ones several times, as do all others of its group: what was said there can be compared with what else was said in
    the very same place (GiGPO). The outcome alone praises every slide of an episode that made it in the end.
    """

    instructions = "Climb by naming the colour of each rung; a wrong name slides to the ground. Command: step COLOUR."
    words, verb = ("First", "Second", "Third", "Fourth"), "step"
    goal = 4
    max_turns = 12

    @property
    def asking(self) -> str:
        return self.words[self.done]

    def respond(self, action: str) -> Turn:
        if action not in self.admissible():
            return self.invalid(f"{self.asking}?")
        self.done = self.done + 1 if action == self.expert() else 0
        return self.go_on(f"{self.asking}?") if self.done < self.goal else self.succeed("Top.")


class Decisive(CreditWorld):
    """Walk past eight places; at mill and ford the way matters, and only the end tells whether it was right.

    Isolates few decisive turns among many without consequence. Any colour will do at the other six places, so that
    credit which falls on all turns alike is three parts noise. An estimator of what each turn contributes (SPA) can
    find out that two of them decide.
    """

    instructions = "Walk to the end. At mill and ford the way matters, and was told. Command: take COLOUR."
    words, verb = ("Mill", "Ford"), "take"
    goal = 8
    max_turns = 10

    @classmethod
    def problems(cls) -> Iterator[dict[str, Any]]:
        for at, colours in product(permutations(range(cls.goal), 2), product(COLOURS, repeat=2)):
            walk = ["Wood", "Hill", "Farm", "Well", "Gate", "Moor"]
            for place, word in sorted(zip(at, cls.words, strict=True)):
                walk.insert(place, word)
            yield {"colours": list(colours), "walk": walk}

    @property
    def asking(self) -> str:
        return self.task.params["walk"][self.done]

    def begin(self, task: Task, rng: np.random.Generator) -> str:
        self.right = True
        return super().begin(task, rng)

    def respond(self, action: str) -> Turn:
        if action not in self.admissible():
            return self.invalid(f"{self.asking}?")
        self.right = self.right and (self.right_colour() is None or action == self.expert())
        self.done += 1
        if self.done < self.goal:
            return self.go_on(f"{self.asking}?")
        return self.succeed("You arrive.") if self.right else self.fail("You are lost.")

    def save(self) -> bytes:
        return json.dumps([self.done, self.right]).encode()

    def load(self, data: bytes) -> None:
        self.done, self.right = json.loads(data)


class Shortcut(CreditWorld):
    """Four gates ask for their colours; a ford leads past them, dry for three tasks in five, and nobody can see it.

    Isolates a good strategy that hides behind an easy one. Wading succeeds as often as the ford is dry; who names the
    colours always arrives, but the policy cannot do that reliably yet. One that grows certain of wading never learns
    to: this is where holding entropy near its history (EPO) should matter.
    """

    instructions = (
        "Name each gate's colour as told, or wade and hope that the ford is dry. Commands: name COLOUR, wade."
    )
    words, verb = ("First", "Second", "Third", "Fourth"), "name"
    goal = 4
    max_turns = 6
    dry: ClassVar[float] = 0.6

    @property
    def asking(self) -> str:
        return self.words[self.done]

    def is_dry(self) -> bool:
        return generator("ford", self.task.params["colours"]).random() < self.dry

    def respond(self, action: str) -> Turn:
        if action not in self.admissible():
            return self.invalid(f"{self.asking}?")
        if action == "wade":
            return self.succeed("You arrive.") if self.is_dry() else self.fail("You are swept away.")
        self.done += action == f"{self.verb} {self.right_colour()}"
        return self.go_on(f"{self.asking}?") if self.done < self.goal else self.succeed("You arrive.")

    def admissible(self) -> list[str]:
        return [*super().admissible(), "wade"]

    def expert(self) -> str:
        careless = generator("way", self.task.params["colours"]).random() < 0.5
        return "wade" if careless and self.is_dry() else super().expert()
