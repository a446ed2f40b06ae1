"""Episodes as a learner reads them: one sample for all turns, or one a turn with what its prompt keeps of the past."""

from dataclasses import dataclass
from itertools import chain
from typing import Literal

import numpy as np

from manyturn.envs.contract.random_keys import generator
from manyturn.trainers.learn.passes.samples import Sample

Context = Literal["whole", "history", "window"]
_WINDOW = 2  # turns before the present one that a window keeps
_FIRST_ID = 8  # smaller ones may be special tokens


@dataclass(frozen=True)
class Shape:
    """Shape of episodes; lengths of observations and replies are drawn between half and all of the number.

    Attributes:
        episodes: members of one group, or of several where prompts differ.
        turns: most turns of an episode; a third of them may be missing.
        instructions: tokens that all episodes begin with.
        observation, reply: tokens of a turn.
    """

    episodes: int
    turns: int
    instructions: int
    observation: int
    reply: int


def episodes_of(shape: Shape, vocabulary: int) -> list[list[np.ndarray]]:
    """Token ids of each episode: the instructions, then observation and reply of each turn in turn."""
    rng = generator("learner benchmark", str(shape))

    def drawn(length: int, least: int) -> np.ndarray:
        return rng.integers(_FIRST_ID, vocabulary, size=int(rng.integers(least, length + 1)))

    instructions = drawn(shape.instructions, shape.instructions)
    episodes = []
    for _ in range(shape.episodes):
        turns = int(rng.integers(-(-2 * shape.turns // 3), shape.turns + 1))
        pairs = [
            (drawn(shape.observation, -(-shape.observation // 2)), drawn(shape.reply, -(-shape.reply // 2)))
            for _ in range(turns)
        ]
        episodes.append([instructions, *chain(*pairs)])
    return episodes


def samples_of(episodes: list[list[np.ndarray]], context: Context) -> list[Sample]:
    """The samples of these episodes."""
    samples = []
    for number, parts in enumerate(episodes):
        turns = len(parts) // 2
        if context == "whole":
            samples.append(_sample(number, parts, set(range(turns)), 0, turns))
            continue
        for turn in range(turns):
            first = max(0, turn - _WINDOW) if context == "window" else 0
            seen = [parts[0], *parts[1 + 2 * first : 3 + 2 * turn]]
            samples.append(_sample(number, seen, {turn}, first, turns))
    return samples


def _sample(episode: int, parts: list[np.ndarray], trained: set[int], first: int, turns: int) -> Sample:
    """From the instructions and turns from ``first`` on, of which the policy is asked for those that are ``said``."""
    whose = [-1] + [
        first + place // 2 if place % 2 and first + place // 2 in trained else -1 for place in range(len(parts) - 1)
    ]
    ids = np.concatenate(parts)
    reply = np.concatenate([np.full(len(part), turn) for part, turn in zip(parts, whose, strict=True)])
    return Sample(episode, ids, reply >= 0, np.where(reply >= 0, -5.0, 0.0), reply, turns)
