"""Occupancy: number of episodes in a place over time."""

from collections.abc import Callable


class Occupancy:
    """Counts who comes and goes.

    Args:
        clock: seconds.

    Attributes:
        now: how many are there.
    """

    def __init__(self, clock: Callable[[], float]):
        self.now, self._clock = 0, clock
        self._area = self._empty = 0.0
        self._began = self._since = clock()

    def change(self, by: int) -> None:
        """So many come, or go where it is negative."""
        self._pass_time()
        self.now += by

    def shares(self) -> tuple[float, float]:
        """Mean number since the last call, and the share of time with none."""
        self._pass_time()
        passed = self._since - self._began
        means = (self._area / passed, self._empty / passed) if passed else (float(self.now), float(not self.now))
        self._area = self._empty = 0.0
        self._began = self._since
        return means

    def _pass_time(self) -> None:
        now = self._clock()
        self._area += (now - self._since) * self.now
        self._empty += (now - self._since) * (not self.now)
        self._since = now
