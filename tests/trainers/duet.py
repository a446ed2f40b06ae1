"""Two who speak in turn about a number: each earns for saying its own side's word, whatever the other earns."""

from collections.abc import Hashable, Sequence

import numpy as np

from manyturn.envs.contract.env.text_env import TextEnv
from manyturn.envs.contract.env.turn import Turn
from manyturn.envs.contract.tasks.task import GeneratedTasks, Task

WORDS = ("odd", "even")


class Duet(TextEnv):
    """The caller earns for telling the truth about the number, the liar for saying the contrary of what it heard.

    What each earns is paid at the other's turn or at the end, so that a wrong owner would show.
    """

    instructions = "Say odd or even."
    roles = ("caller", "liar")
    part_names = ("caller.true", "liar.false")
    max_turns = 2

    def tasks(self, split: str) -> Sequence[Task]:
        first = ("train", "validation", "test").index(split) * 30
        return GeneratedTasks(lambda i: Task(f"{split}/{i}", split, {"n": first + i}), 30, f"{split}/")

    def begin(self, task: Task, rng: np.random.Generator) -> str:
        self._said: list[str] = []
        return f"You call. The number is {'an odd' if task.params['n'] % 2 else 'an even'} one."

    def respond(self, action: str) -> Turn:
        word = action.strip()
        self._said.append(word)
        if len(self._said) == 1:
            return Turn(f"You lie. You hear {word if word in WORDS else 'nothing'}.", {}, understood=word in WORDS)
        truth, (call, lie) = WORDS[1 - self.task.params["n"] % 2], self._said
        paid = {"caller.true": float(call == truth), "liar.false": float(lie in WORDS and lie != call)}
        return Turn("It is over.", paid, understood=word in WORDS, terminated=True, success=all(paid.values()))

    def admissible(self) -> list[str]:
        return list(WORDS)

    def anchor(self) -> Hashable:
        return (self.task.id, *self._said)

    def expert(self) -> str:
        truth = WORDS[1 - self.task.params["n"] % 2]
        return truth if not self._said else WORDS[1 - WORDS.index(self._said[0])] if self._said[0] in WORDS else "odd"

    def role(self) -> str:
        return self.roles[min(len(self._said), 1)]
