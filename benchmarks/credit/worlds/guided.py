"""A world in which every group fails, because no observation says how to succeed: words from outside can.

At each of four turns one of sixteen paths is right, the same ones in every task; no observation names them. Only a walk
without a mistake succeeds: one in 16^4 at random. So no reward comes until the walk is known, and a policy can learn it
only from words that others give it. The places on the way tell tasks apart, and nothing else.

In the taught form the right paths are drawn for each task, and most first observations say them in the words of a hint
or of a critique. A policy that has learnt to follow words there knows nothing of the walk of the other form.
"""

import json
from collections.abc import Hashable, Sequence
from functools import cache

import numpy as np

from manyturn.envs.contract.env.text_env import TextEnv
from manyturn.envs.contract.env.turn import Turn
from manyturn.envs.contract.random_keys import generator
from manyturn.envs.contract.tasks.task import Task, split_of
from manyturn.trainers.play.guidance import critique, hints
from manyturn.trainers.play.guidance.guided_play import with_guidance

COLOURS = (
    "red", "blue", "green", "white", "black", "brown", "pink", "grey",
    "gold", "silver", "purple", "orange", "yellow", "violet", "cyan", "beige",
)  # fmt: skip
PLACES = ("Mill", "Ford", "Hill", "Farm", "Well", "Gate", "Moor", "Wood")
TURNS = 4
_WALKS = 4000
_SILENT = 0.2  # share of taught walks without words, after which a policy guesses and is certain of nothing


class UnmarkedPaths(TextEnv):
    """Walk past four places; at each one path is right, and no observation says which.

    The text of a walk that went wrong ends with words about an unrelated walk. No turn follows it, so that the policy
    never reads it; a tiny model takes its vocabulary from it, which is then that of the taught form.

    Args:
        split: split that ``reset`` draws from.
        taught: draw the right paths for each task, and say them in most first observations.
    """

    instructions = "Take the right path at each place. Command: take COLOUR."
    part_names = ()
    max_turns = TURNS

    def __init__(self, split: str = "train", taught: bool = False):
        super().__init__(split)
        self.taught = taught

    def tasks(self, split: str) -> Sequence[Task]:
        return _by_split(self.taught)[split]

    def begin(self, task: Task, rng: np.random.Generator) -> str:
        self.at, self.right = 0, True
        words = task.params.get("words")
        return with_guidance(self._question(), words) if words else self._question()

    def _question(self) -> str:
        return f"turn {self.at + 1}: {self.task.params['places'][self.at]}?"

    def respond(self, action: str) -> Turn:
        if action not in self.admissible():
            return self.invalid(self._question())
        self.right = self.right and action == self.expert()
        self.at += 1
        if self.at < TURNS:
            return self.go_on(self._question())
        return self.succeed("You arrive.") if self.right else self.fail(_LOST)

    def admissible(self) -> list[str]:
        return [_take(colour) for colour in range(len(COLOURS))]

    def anchor(self) -> Hashable:
        return (self.task.id, self.at)

    def progress(self) -> float:
        return self.at / TURNS

    def expert(self) -> str:
        return _take(self.task.params["colours"][self.at])

    def save(self) -> bytes:
        return json.dumps([self.at, self.right]).encode()

    def load(self, data: bytes) -> None:
        self.at, self.right = json.loads(data)


def _take(colour: int) -> str:
    return f"take {COLOURS[colour]}"


@cache
def _by_split(taught: bool) -> dict[str, list[Task]]:
    """Different walks, each in the split that its content belongs to."""
    walks = {
        Task("", "", params).content: params for params in (_walk(number, taught=taught) for number in range(_WALKS))
    }
    shares: dict[str, list[Task]] = {"train": [], "validation": [], "test": []}
    for number, (content, params) in enumerate(walks.items()):
        split = split_of(content)
        shares[split].append(Task(f"{split}/{number}", split, params))
    return shares


def _walk(number: int, *, taught: bool) -> dict[str, object]:
    """Places, the numbers of the colours that are right there, and, in the taught form, words that say them."""
    rng = generator("unmarked paths", taught, number)
    places = rng.choice(len(PLACES), TURNS, replace=False)
    colours = (rng if taught else generator("right paths")).integers(len(COLOURS), size=TURNS).tolist()
    words = {"words": _words(colours, rng)} if taught else {}
    return {"places": [PLACES[place] for place in places], "colours": colours, **words}


def _words(colours: Sequence[int], rng: np.random.Generator) -> str:
    """A hint, or a critique of an attempt that was wrong at most turns, or nothing."""
    kind = rng.random()
    if kind < _SILENT:
        return ""
    if kind < (1 + _SILENT) / 2:
        return hints.spoken([_take(colour) for colour in colours])
    shifts = rng.integers(len(COLOURS), size=TURNS).tolist()
    tried = [(colour + shift) % len(COLOURS) for colour, shift in zip(colours, shifts, strict=True)]
    wrong = [
        (turn, _take(one), _take(right))
        for turn, (one, right) in enumerate(zip(tried, colours, strict=True), 1)
        if one != right
    ]
    return critique.spoken(wrong) if wrong else ""


_OTHER = [0] * TURNS
_LOST = with_guidance(
    with_guidance("You are lost.", hints.spoken([_take(colour) for colour in _OTHER])),
    critique.spoken([(turn, _take(1), _take(colour)) for turn, colour in enumerate(_OTHER, 1)]),
)
