"""Stops a run whose environment breaks too often, counted over all of the run's episodes."""

from collections import deque

from manyturn.agents.play.episode import Ending, Episode


class TooManyErrors(RuntimeError):
    """Episodes fail by error so often that going on would waste the run."""


class Breaker:
    """Remembers how the last episodes of one environment ended, from one call of ``gather`` to the next.

    Args:
        share: share of the remembered episodes that may have ended in an error.
        window: how many are remembered.
        least: how many must have ended before it judges.
        allowed_by: the user's option that allows a greater share; None if there is none.
    """

    def __init__(self, share: float = 0.1, window: int = 200, least: int = 20, allowed_by: str | None = None):
        if not 0 <= share <= 1 or not 1 <= least <= window:
            raise ValueError(f"share = {share} must be in 0..1, and least = {least} in 1..window = {window}")
        self.share, self.least, self.allowed_by = share, least, allowed_by
        self._failed: deque[bool] = deque(maxlen=window)

    def note(self, episode: Episode) -> None:
        """Take in an episode that has ended. Raises TooManyErrors."""
        self._failed.append(episode.ending.is_error)
        errors, ended = sum(self._failed), len(self._failed)
        if episode.ending.is_error and ended >= self.least and errors > self.share * ended:
            raise TooManyErrors(complaint(errors, f"the last {ended}", episode, self.allowed_by))


def complaint(errors: int, among: str, last: Episode, allowed_by: str | None) -> str:
    """The message about episodes that ended in an error, and how to fix it."""
    fixes = ["Run manyturn check on the environment"] if last.ending is Ending.ENV_ERROR else []
    fixes += [f"{allowed_by} allows more"] if allowed_by else []
    message = f"{errors} of {among} episodes ended in an error, the last, of task {last.task.id}: {last.cause}"
    return ". ".join([message, *(["; ".join(fixes)] if fixes else [])])
