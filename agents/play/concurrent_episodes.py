"""Play many episodes side by side, in any order they finish, and give them back in the order asked for."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

from manyturn.agents.play.episode import Ending, Episode, Policy, most_open, play
from manyturn.agents.play.error_limit import Breaker, TooManyErrors, complaint
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.envs.contract.keys import generator
from manyturn.envs.contract.task import Task
from manyturn.envs.hosting.seats import Seats

_PAUSE, _LONGEST_PAUSE = 0.1, 2.0  # seconds before the second attempt, doubled for each further one


@dataclass(frozen=True)
class Patience:
    """What to do about errors.

    Attributes:
        attempts: how often one episode is tried, each time in a fresh reset under the same key.
        error_share: share of episodes that may end in an error before everything stops.
        allowed_by: the user's option that allows a greater share; None if there is none.
    """

    attempts: int = 3
    error_share: float = 0.1
    allowed_by: str | None = None


async def gather(
    seats: Seats,
    policy: Policy,
    plan: Sequence[tuple[Task, EpisodeKey]],
    *,
    max_turns: int,
    patience: Patience = Patience(),
    breaker: Breaker | None = None,
    on_episode: Callable[[Episode], None] | None = None,
) -> list[Episode]:
    """Play every planned episode once.

    As many run side by side as there are seats, and as get on with the policy; a seat that falls free takes the next
    episode, so none waits for the slowest and nothing is computed for episodes that have ended. An episode that ended
    in an error is tried again: at once if the environment raised, after a pause if the machinery failed, while its seat
    plays others. One whose process ended while it was busy with another episode is repeated, and that is no attempt.

    Args:
        plan: N tasks with the key of each episode.
        max_turns: for environments without a limit of their own.
        breaker: hears of every episode; it stops everything when too many of the last ones ended in an error.
        on_episode: called with each episode when it has ended.

    Returns:
        N episodes in the order of the plan.

    Raises:
        TooManyErrors: more than ``patience.error_share`` of the episodes, and at least two, ended in an error, or the
            breaker stopped everything.
    """
    done: list[Episode | None] = [None] * len(plan)
    queue = _Queue(len(plan))
    allowed, errors = max(1, int(patience.error_share * len(plan))), 0

    async def lane() -> None:
        async with seats.take() as seat:
            await everyone_seated()
            while (waiting := await queue.get()) is not None:
                number, attempts = waiting
                task, key = plan[number]
                episode = await play(seat, policy, task, key, seats.instructions, max_turns)
                again = settled(episode, attempts, patience)
                if again is not None:
                    queue.put_back(number, *again)
                else:
                    done[number] = episode
                    finish(episode)

    def finish(episode: Episode) -> None:
        nonlocal errors
        if episode.ending.is_error:
            errors += 1
        if on_episode is not None:
            on_episode(episode)
        if breaker is not None:
            breaker.note(episode)
        if errors > allowed:
            raise TooManyErrors(complaint(errors, f"{len(plan)}", episode, patience.allowed_by))

    lanes = min(len(plan), seats.limit, most_open(policy, seats.processes) or seats.limit)
    seated, start = 0, asyncio.Event()

    async def everyone_seated() -> None:
        # All lanes begin together, so that an engine that waits for every open episode sees all of them.
        nonlocal seated
        seated += 1
        if seated == lanes:
            start.set()
        await start.wait()

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(lanes):
                group.create_task(lane())
    except BaseExceptionGroup as several:
        first = _first(several)
        raise first from first.__cause__
    return _complete(done)


def settled(episode: Episode, earlier: int, patience: Patience) -> tuple[int, float] | None:
    """What becomes of an attempt that has ended: None where that was the episode, which then names its attempts.

    Args:
        earlier: attempts before it that count.

    Returns:
        Where the episode is to be tried again: attempts that count by now, and the seconds until then.
    """
    episode.attempts = earlier + 1
    if episode.bystander:  # free of charge: a process ends for one suspect, who is charged
        return earlier, 0.0
    if episode.ending.is_error and not episode.refused and episode.attempts < patience.attempts:
        return episode.attempts, _pause(episode)
    if episode.ending.is_error:
        episode.cause = f"after {episode.attempts} attempt{'s' * (episode.attempts > 1)}: {episode.cause}"
    return None


def _first(error: BaseException) -> BaseException:
    """The first error of a group, or of a group in it."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


class _Queue:
    """Episodes that wait for a seat, by number: those not begun yet in order, and those to be tried again."""

    def __init__(self, count: int):
        self._fresh = iter(range(count))
        self._again: list[tuple[float, int, int]] = []  # when, number, attempts made; the earliest first
        self._clock = asyncio.get_running_loop().time

    def put_back(self, number: int, attempts: int, pause: float) -> None:
        """Try an episode again after ``pause`` seconds."""
        heappush(self._again, (self._clock() + pause, number, attempts))

    async def get(self) -> tuple[int, int] | None:
        """The next episode and how often it was tried; None if all others are being played."""
        if not self._again or self._again[0][0] > self._clock():
            fresh = next(self._fresh, None)
            if fresh is not None:
                return fresh, 0
            if not self._again:
                return None
        when, number, attempts = heappop(self._again)
        await asyncio.sleep(when - self._clock())
        return number, attempts


def _pause(episode: Episode) -> float:
    """Seconds until the next attempt: none after an environment raised, which waiting does not fix."""
    if episode.ending is not Ending.INFRA_ERROR:
        return 0.0
    longest = min(_PAUSE * 2 ** (episode.attempts - 1), _LONGEST_PAUSE)
    return longest * generator("pause", *episode.key, episode.attempts).uniform(0.5, 1.0)


def _complete(done: list[Episode | None]) -> list[Episode]:
    episodes = [episode for episode in done if episode is not None]
    if len(episodes) < len(done):
        raise RuntimeError(f"{len(done) - len(episodes)} episodes have no ending: the policy raised CancelledError")
    return episodes
