"""The one who thinks of something and answers questions about it."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.talk.guessing.trait_table import Table
from manyturn.envs.users.protocol import NOTHING, Heard, User

YES, NO, UNKNOWN = "yes", "no", "unknown"
_SAID = {
    True: ("Yes.", "Yes, that is true.", "Right."),
    False: ("No.", "No, that is not true.", "Not at all."),
    None: ("I do not know.", "Hard to say.", "That depends."),
}
_NOT_A_QUESTION = "I can only answer questions about what it is like."
_NEGATED = (" not ", "n't ", " no ", " never ")


class Oracle(User):
    """Answers from the table, one question at a time; asked two at once it asks back which is meant.

    Args:
        secret_of: the table and the secret of a task.
        asks: what it says first.
    """

    name = "rule"

    def __init__(self, secret_of: Callable[[Task], tuple[Table, str]], opening: Callable[[Task], str]):
        self._secret_of, self._opening = secret_of, opening

    def begin(self, task: Task, rng: np.random.Generator) -> str:
        self._table, secret = self._secret_of(task)
        self._row, self._rng = self._table.rows[secret], rng
        return self._opening(task)

    def hear(self, text: str, cue: Mapping[str, Any] = NOTHING) -> Heard:
        traits = self._table.traits_in(text)
        if not traits:
            return Heard(_NOT_A_QUESTION)
        if any(sign in f" {text.lower()} " for sign in _NEGATED):
            return Heard("Please ask without a negation.")
        if len(traits) > 1:
            return Heard(f"Which do you mean: {traits[0].question} Or: {traits[1].question}")
        answer = _SAID[self._row[traits[0].name]]
        return Heard(answer[int(self._rng.integers(len(answer)))])

    def save(self) -> Any:
        return None

    def load(self, state: Any) -> None:
        """Nothing is remembered."""


def answer_in(utterance: str) -> bool | None:
    """Yes or no, as an utterance begins; None if it says neither."""
    first = utterance.strip().lower()
    if first.startswith(("yes", "right", "correct", "it is")):
        return True
    return False if first.startswith(("no.", "no,", "no ", "not ", "it is not")) or first == "no" else None
