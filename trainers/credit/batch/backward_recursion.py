"""Recursions from the end of each episode, over its turns or its tokens: x_n + factor x_(n+1) + factor^2 x_(n+2) ..."""

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from manyturn.trainers.credit.batch.turn_batch import IntK

FloatP = NDArray[np.float64]


class Timeline(NamedTuple):
    """P places of some episodes, laid out by time: first every episode's place 0, longest episode first, then 1, ...

    What is alive at a time is then a slice, and no episode is padded to the length of the longest.

    Attributes:
        index_P: the index of a place in the layout.
        start_I: where the places of an instant begin in the layout; one more entry marks its end.
        alive_I: number of episodes that have a place of that instant, with a 0 after the last.
    """

    index_P: IntK
    start_I: IntK
    alive_I: IntK

    @classmethod
    def of(cls, episode_P: IntK, place_P: IntK) -> Self:
        """From the episode of each place and its number in there, from 0 and without gaps."""
        length_E = np.bincount(episode_P)
        rank_E = np.empty(len(length_E), np.int64)
        rank_E[np.argsort(-length_E, kind="stable")] = np.arange(len(length_E))
        times = np.arange(int(place_P.max(initial=-1)) + 2)
        alive_I = len(length_E) - np.searchsorted(np.sort(length_E), times, side="right")
        start_I = np.concatenate([[0], np.cumsum(alive_I)])
        return cls(start_I[place_P] + rank_E[episode_P], start_I, alive_I)

    def to_go(self, value_P: FloatP, factor: float | FloatP) -> FloatP:
        """Sum over a place's own and later places of value x factor^distance.

        Of several factors (P) that of a place leads to the next one.

        >>> Timeline.of(np.array([0, 0, 1, 0]), np.array([0, 1, 0, 2])).to_go(np.array([1.0, 2.0, 8.0, 4.0]), 0.5)
        array([3., 4., 8., 4.])
        """
        flat, factors = np.empty(len(value_P)), np.empty(len(value_P))
        flat[self.index_P], factors[self.index_P] = value_P, factor
        for time in range(len(self.alive_I) - 3, -1, -1):
            here, later, alive = self.start_I[time], self.start_I[time + 1], self.alive_I[time + 1]
            flat[here : here + alive] += factors[here : here + alive] * flat[later : later + alive]
        return flat[self.index_P]

    def following(self, value_P: FloatP, end_P: FloatP) -> FloatP:
        """The value at the next place; at an episode's last place that of ``end_P``.

        >>> Timeline.of(np.array([0, 0, 1]), np.array([0, 1, 0])).following(np.array([1.0, 2.0, 8.0]), np.zeros(3))
        array([2., 0., 0.])
        """
        time_P = np.searchsorted(self.start_I, self.index_P, side="right") - 1
        rank_P = self.index_P - self.start_I[time_P]
        last_P = rank_P >= self.alive_I[time_P + 1]
        flat = np.empty(len(value_P))
        flat[self.index_P] = value_P
        return np.where(last_P, end_P, flat[np.where(last_P, self.index_P, self.start_I[time_P + 1] + rank_P)])
