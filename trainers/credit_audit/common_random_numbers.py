"""Common random numbers of continuations: the same for every situation of a task, turn by turn."""

from functools import cached_property
from typing import Any

import numpy as np

from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.envs.contract.random_keys import generator


class Noise:
    """Everything random in one continuation, or in one episode of the group.

    Args:
        key: its seed, what it is for, the task, and its number.
        turns: turns that an episode has at most.
    """

    def __init__(self, key: EpisodeKey, turns: int):
        self.key = key
        self._uniform = generator("audit", *key).random((turns, 2)).tolist()

    def uniform(self, turn: int) -> tuple[float, float]:
        """Two numbers in [0, 1) for the policy at a turn."""
        u, v = self._uniform[turn]
        return u, v

    def seed(self, turn: int) -> int:
        """The seed of a policy at a turn."""
        return self.key.noise_seed(turn)

    @cached_property
    def chance(self) -> Any:
        """State of the generator from which an environment draws."""
        return generator("chance", *self.key).bit_generator.state


class NoiseTable:
    """The noise of all continuations of a task, each made once.

    Args:
        stage: what they are for, such as "truth": another stage draws other numbers.
    """

    def __init__(self, seed: int, stage: str, task: str, turns: int):
        self._seed, self._stage, self._task, self._turns = seed, stage, task, turns
        self._made: dict[int, Noise] = {}

    def __getitem__(self, number: int) -> Noise:
        if number not in self._made:
            self._made[number] = Noise(EpisodeKey(self._seed, self._stage, self._task, number), self._turns)
        return self._made[number]


def picked(v: float, items: int) -> int:
    """The place of an item among so many, from a uniform number."""
    return min(int(v * items), items - 1)


def is_drawn(before: Any, rng: np.random.Generator | None) -> bool:
    """True where a generator has drawn since its state was ``before``."""
    return rng is not None and rng.bit_generator.state != before
