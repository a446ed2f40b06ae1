"""A run that has started its ranks, or had Ray place them, ends when one of them has, whatever it does then."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Protocol

from manyturn.trainers.learn.ranks.process_group import RankLost
from manyturn.trainers.learn.ranks.rendezvous import RESUME

_PAUSE_SECONDS = 1.0  # in which whoever talks to that rank hears of its end
_REASON_SECONDS = 12.0  # until the reason is there


class RankWatch(Protocol):
    """Source of the news that a rank has ended."""

    async def rank_end(self) -> str:
        """First rank that ends before the run, and the reason."""
        ...


@contextlib.asynccontextmanager
async def ending_with_ranks(ranks: RankWatch) -> AsyncIterator[None]:
    """Around what the ranks take part in. Raises RankLost, which gives the reason."""
    run, is_ended = asyncio.current_task(), False
    assert run is not None

    async def end() -> None:
        nonlocal is_ended
        await ranks.rank_end()
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
            why = await asyncio.wait_for(ranks.rank_end(), _REASON_SECONDS)
        raise RankLost(f"{why}: {RESUME}") from error
    finally:
        watch.cancel()
