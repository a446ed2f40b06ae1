"""The longest time for which an event loop stands still while its process could go on."""

import asyncio
import bisect
import contextlib
import itertools
import threading
import time
from collections.abc import AsyncIterator, Sequence

TICK = 0.02
MOST_SECONDS = 1.0  # that one client may hold up the others


def longest_pause(loop: Sequence[float], thread: Sequence[float]) -> float:
    """Longest gap between moments of an event loop, less the longest in that gap between those of a thread beside it.

    A machine that gives the process no time stops both, so what remains is the loop's own fault.

    >>> longest_pause([0.0, 0.1, 3.1], [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5])
    2.5
    >>> longest_pause([0.0, 0.1, 3.1], [0.0, 0.1, 3.1])
    0.0
    """
    return max(end - start - _longest_gap(thread, start, end) for start, end in itertools.pairwise(loop))


def _longest_gap(moments: Sequence[float], start: float, end: float) -> float:
    inside = moments[bisect.bisect(moments, start) : bisect.bisect(moments, end)]
    return max(later - earlier for earlier, later in itertools.pairwise((start, *inside, end)))


@contextlib.asynccontextmanager
async def without_pauses() -> AsyncIterator[None]:
    """Raise AssertionError if the running event loop stood still too long in this block."""
    moments, others, over = [time.monotonic()], [time.monotonic()], threading.Event()

    async def tick() -> None:
        while True:
            await asyncio.sleep(TICK)
            moments.append(time.monotonic())

    def tick_beside() -> None:
        while not over.wait(TICK):
            others.append(time.monotonic())

    beside, ticking = threading.Thread(target=tick_beside, daemon=True), asyncio.create_task(tick())
    beside.start()
    try:
        yield
        await asyncio.sleep(2 * TICK)  # the last pause ends with the next moment
    finally:
        ticking.cancel()
        over.set()
        await asyncio.to_thread(beside.join)
    pause = longest_pause(moments, others)
    assert pause < MOST_SECONDS, f"the event loop stood still for {pause:.2f} s"
