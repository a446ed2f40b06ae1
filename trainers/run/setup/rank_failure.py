"""A run whose ranks Ray has placed ends when one of them has, whatever it does then."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from manyturn.envs.hosting.local.seats import Seats
from manyturn.envs.hosting.remote.ray_seats import RaySeats
from manyturn.trainers.learn.ranks.process_group import RankLost
from manyturn.trainers.learn.ranks.rendezvous import RESUME

_PAUSE_SECONDS = 1.0  # in which whoever talks to that rank hears of its end
_REASON_SECONDS = 12.0  # until Ray has said why


@contextlib.asynccontextmanager
async def ending_with_ranks(seats: Seats) -> AsyncIterator[None]:
    """Around what the ranks take part in. Raises RankLost, which says what Ray says."""
    run, is_ended = asyncio.current_task(), False
    assert run is not None and isinstance(seats, RaySeats)

    async def end() -> None:
        nonlocal is_ended
        await seats.rank_end()
        await asyncio.sleep(_PAUSE_SECONDS)  # episodes are played meanwhile, for which no rank is needed
        is_ended = True
        run.cancel()

    watch = asyncio.create_task(end())
    try:
        yield
    except (RankLost, asyncio.CancelledError) as error:
        if isinstance(error, asyncio.CancelledError) and not is_ended:
            raise
        if is_ended:
            run.uncancel()
        why = "another process of this run has ended"
        with contextlib.suppress(TimeoutError):
            why = await asyncio.wait_for(seats.rank_end(), _REASON_SECONDS)
        raise RankLost(f"{why}: {RESUME}") from error
    finally:
        watch.cancel()
