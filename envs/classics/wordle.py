"""Wordle: find a word of five letters, each guess being answered letter by letter. The list of words is our own."""

import json
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from manyturn.envs.classics.five_letter_words import WORDS
from manyturn.envs.contract.env.text_env import TextEnv
from manyturn.envs.contract.env.turn import Turn
from manyturn.envs.contract.stable_random import Draws
from manyturn.envs.contract.tasks.task import SPLITS, GeneratedTasks, Task, is_held_out, params_of_split

_NUMBER = {word: number for number, word in enumerate(WORDS)}
_SIGNS = ("no", "elsewhere", "yes")  # in the word at this place, at another, or not
_LENGTH = 5


@dataclass(frozen=True)
class WordleLevel:
    """Words that the first text lists, the secret among them, and guesses that there are."""

    words: int
    turns: int


LEVELS = {"easy": WordleLevel(30, 3), "medium": WordleLevel(100, 4), "hard": WordleLevel(300, 5)}
_TASKS = {"train": 1_000_000, "validation": 100_000, "test": 100_000, "test_unseen": 100_000}


class Wordle(TextEnv):
    """Find a word of five letters.

    Task:
        A secret word among those that the first text lists. The list of all words is our own, of common English ones,
        and each task has a part of it: scores are not comparable with the newspaper's game.
    Observation:
        For each letter of the last guess ``yes`` (in the word, at this place), ``elsewhere`` (in the word, at another
        place) or ``no``. A letter that is guessed twice and is once in the word has one ``yes`` or ``elsewhere``.
        ``progress`` is the share of the information gained.
    Actions:
        ``guess WORD``, with a word of the list. Anything else is invalid and costs a guess.
    Reward:
        1 for the word, and nothing else.
    End:
        Success when the word is guessed; an episode is truncated at ``max_turns``.
    Splits:
        train, validation and test share no task. Secret words of ``test_unseen`` are secret in no other split.
    Expert:
        Guesses the word that divides those still possible into most groups, a possible one if there are several.
    Floors:
        ``manyturn envs manyturn/Wordle-v0`` measures expert and random policy on every level.

    Args:
        split: train, validation, test or test_unseen.
        difficulty: easy (30 words, 3 guesses), medium (100, 4) or hard (300, 5).
        max_turns: overrides the level's number of guesses.
    """

    instructions = (
        "Find the secret word of five letters. It is one of the words of the first text. After each guess you learn "
        "whether each letter is right: yes means in the word at this place, elsewhere means in the word at another "
        "place, no means not in the word. Command: guess WORD."
    )
    splits = (*SPLITS, "test_unseen")
    part_names = ()
    levels = LEVELS
    level: WordleLevel

    def __init__(self, split: str = "train", difficulty: str = "easy", max_turns: int | None = None):
        super().__init__(split, max_turns, difficulty)

    def tasks(self, split: str) -> Sequence[Task]:
        prefix, secrets = f"{split}/{self.difficulty}/", _secrets(split == "test_unseen")

        def make(number: int) -> Task:
            draws = Draws("wordle", prefix, number)

            def draw() -> dict[str, Any]:
                secret = draws.pick(secrets)
                words = {secret}
                while len(words) < self.level.words:
                    words.add(draws.pick(WORDS))
                return {"secret": secret, "words": " ".join(sorted(words))}

            return Task(f"{prefix}{number}", split, params_of_split(draw, split), self.difficulty)

        return GeneratedTasks(make, _TASKS[split], prefix)

    def begin(self, task: Task, rng: np.random.Generator) -> str:
        self._secret: str = task.params["secret"]
        self._words: list[str] = task.params["words"].split()
        self._possible = list(self._words)
        return f"The word is one of: {', '.join(self._words)}."

    def respond(self, action: str) -> Turn:
        verb, _, guess = action.strip().partition(" ")
        if verb != "guess" or guess not in self._words:
            return self.invalid("Say: guess WORD, with a word of the list.")
        answer = int(_answers()[_NUMBER[guess], _NUMBER[self._secret]])
        row = _answers()[_NUMBER[guess]]
        self._possible = [word for word in self._possible if row[_NUMBER[word]] == answer]
        if guess == self._secret:
            return self.succeed(f"The word is {guess}. You found it.")
        signs = [_SIGNS[answer // 3**place % 3] for place in range(_LENGTH)]
        return self.go_on(f"{', '.join(f'{letter} {sign}' for letter, sign in zip(guess, signs, strict=True))}.")

    def admissible(self) -> list[str]:
        """Every word of the list, those that are ruled out too: to know which is the task."""
        return [f"guess {word}" for word in self._words]

    def anchor(self) -> Hashable:
        return (self.task.id, tuple(self._possible))

    def progress(self) -> float:
        """Share of the information that was gained so far."""
        return 1 - float(np.log(len(self._possible)) / np.log(len(self._words)))

    def expert(self) -> str:
        return f"guess {_best_guess(tuple(self._words), tuple(self._possible))}"

    def answer(self) -> str:
        return f"guess {self._secret}"

    def save(self) -> bytes:
        return json.dumps(self._possible).encode()

    def load(self, data: bytes) -> None:
        self._possible = json.loads(data)


@cache
def _secrets(unseen: bool) -> tuple[str, ...]:
    return tuple(word for word in WORDS if is_held_out("wordle", word) == unseen)


@cache
def _answers() -> np.ndarray:
    """For each pair of guess and secret the answer, W x W: the sum over places of 3**place times a sign's number."""
    letters = np.array([[ord(letter) for letter in word] for word in WORDS], dtype=np.uint8)
    guesses, secrets = letters[:, None, :], letters[None, :, :]
    exact = guesses == secrets  # W x W x place
    answers = np.zeros(exact.shape[:2], dtype=np.uint8)
    used = exact.copy()  # letters of the secret that an earlier sign stands for
    for place in range(_LENGTH):
        here = np.zeros(answers.shape, dtype=bool)
        for other in range(_LENGTH):
            match = ~exact[..., place] & ~here & ~used[..., other] & (guesses[..., place] == secrets[..., other])
            used[..., other] |= match
            here |= match
        answers += np.uint8(3**place) * (2 * exact[..., place].astype(np.uint8) + here)
    return answers


@cache
def _best_guess(words: tuple[str, ...], possible: tuple[str, ...]) -> str:
    """The word with answers that divide the possible ones into most groups; if several have, a possible one."""
    if len(possible) == 1:
        return possible[0]
    table = _answers()[np.ix_([_NUMBER[word] for word in words], [_NUMBER[word] for word in possible])]
    groups = (np.diff(np.sort(table, axis=1), axis=1) != 0).sum(axis=1)
    return max(zip(groups.tolist(), (word in possible for word in words), words, strict=True))[2]
