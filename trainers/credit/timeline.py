"""Recursions from the end of each episode, over its turns or its tokens: x_n + factor x_(n+1) + factor^2 x_(n+2) ..."""

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from manyturn.trainers.credit.turn_batch import IntK

FloatN = NDArray[np.float64]


class Timeline(NamedTuple):
    """N places of some episodes, laid out by time: first every episode's place 0, longest episode first, then 1, ...

    What is alive at a time is then a slice, and no episode is padded to the length of the longest.

    Attributes:
        index_N: where a place lies in the layout.
        start_P: where the places of time P begin in the layout; one more entry marks its end.
        alive_P: number of episodes that have a place of time P, with a 0 behind the last.
    """

    index_N: IntK
    start_P: IntK
    alive_P: IntK

    @classmethod
    def of(cls, episode_N: IntK, place_N: IntK) -> Self:
        """From the episode of each place and its number in there, from 0 and without gaps."""
        length_E = np.bincount(episode_N)
        rank_E = np.empty(len(length_E), np.int64)
        rank_E[np.argsort(-length_E, kind="stable")] = np.arange(len(length_E))
        times = np.arange(int(place_N.max(initial=-1)) + 2)
        alive_P = len(length_E) - np.searchsorted(np.sort(length_E), times, side="right")
        start_P = np.concatenate([[0], np.cumsum(alive_P)])
        return cls(start_P[place_N] + rank_E[episode_N], start_P, alive_P)

    def to_go(self, value_N: FloatN, factor: float) -> FloatN:
        """Sum over a place's own and later places of value x factor^distance.

        >>> Timeline.of(np.array([0, 0, 1, 0]), np.array([0, 1, 0, 2])).to_go(np.array([1.0, 2.0, 8.0, 4.0]), 0.5)
        array([3., 4., 8., 4.])
        """
        flat = np.empty(len(value_N))
        flat[self.index_N] = value_N
        for time in range(len(self.alive_P) - 3, -1, -1):
            here, later, alive = self.start_P[time], self.start_P[time + 1], self.alive_P[time + 1]
            flat[here : here + alive] += factor * flat[later : later + alive]
        return flat[self.index_N]

    def following(self, value_N: FloatN, end_N: FloatN) -> FloatN:
        """The value at the next place; at an episode's last place that of ``end_N``.

        >>> Timeline.of(np.array([0, 0, 1]), np.array([0, 1, 0])).following(np.array([1.0, 2.0, 8.0]), np.zeros(3))
        array([2., 0., 0.])
        """
        time_N = np.searchsorted(self.start_P, self.index_N, side="right") - 1
        rank_N = self.index_N - self.start_P[time_N]
        last_N = rank_N >= self.alive_P[time_N + 1]
        flat = np.empty(len(value_N))
        flat[self.index_N] = value_N
        return np.where(last_N, end_N, flat[np.where(last_N, self.index_N, self.start_P[time_N + 1] + rank_N)])
