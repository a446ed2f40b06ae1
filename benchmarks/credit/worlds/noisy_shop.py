"""A shop whose pages say when they were made and how many people are there, as pages of real shops do.

It is Shop-v0 with one more line. That depends on all that was done before, so that no page comes twice in an episode in
the same words, and two episodes see the same only as long as they do the same.
"""

import json
from dataclasses import replace

import numpy as np

from manyturn.envs.contract.env.turn import Turn
from manyturn.envs.contract.random_keys import generator
from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.shop.generated.env import Shop


class BusyShop(Shop):
    """Its situations are known by what is seen alone."""

    def begin(self, task: Task, rng: np.random.Generator) -> str:
        self._done = [task.id]
        return super().begin(task, rng) + self._line()

    def respond(self, action: str) -> Turn:
        self._done.append(action)
        turn = super().respond(action)
        return replace(turn, text=turn.text + self._line())

    def anchor(self) -> tuple:
        return self.task.id, self.observation  # not by the shop's own book-keeping

    def _line(self) -> str:
        rng = generator("busy shop", *self._done)
        hours, minutes, seconds, people = (int(rng.integers(most)) for most in (24, 60, 60, 400))
        return f" [SEP] {hours:02d}:{minutes:02d}:{seconds:02d}, {people} people are in the shop"

    def save(self) -> bytes:
        return json.dumps([self._done, super().save().decode()]).encode()

    def load(self, data: bytes) -> None:
        self._done, inner = json.loads(data)
        super().load(inner.encode())
