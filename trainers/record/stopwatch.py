"""Cost of a stretch of work, by wall clock and by CPU time.

A machine that others use too stretches the first; the second hardly moves, so that it compares runs of different hours.
"""

import time


class Stopwatch:
    """Runs from when it is made."""

    def __init__(self) -> None:
        self._began = self._now()

    def lap(self, name: str) -> dict[str, float]:
        """Seconds since it was made or last asked, as metrics ``NAME_seconds`` and ``NAME_cpu_seconds``.

        Seconds of the processor are those of this process, all its threads together.
        """
        now, began = self._now(), self._began
        self._began = now
        wall, cpu = (round(after - before, 3) for after, before in zip(now, began, strict=True))
        return {f"{name}_seconds": wall, f"{name}_cpu_seconds": cpu}

    @staticmethod
    def _now() -> tuple[float, float]:
        return time.monotonic(), time.process_time()
