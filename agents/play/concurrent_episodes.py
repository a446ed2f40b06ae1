"""Play many episodes side by side, in any order they finish, and give them back in the order asked for."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

from manyturn.agents.play.episode import Ending, Episode, Policy, most_open, play
from manyturn.agents.play.error_limit import Breaker, TooManyErrors, complaint
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.envs.contract.random_keys import generator
from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.hosting.local.seats import Seats

_PAUSE, _LONGEST_PAUSE = 0.1, 2.0  # seconds before the second attempt, doubled for each further one


@dataclass(frozen=True)
class Patience:
    """Limits on errors and retries.

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
    play_all = _Lanes(seats, policy, plan, max_turns, patience)
    play_all.breaker, play_all.on_episode = breaker, on_episode
    return await play_all.run()


class _Lanes:
    """Lanes that play planned episodes side by side, each in a seat of its own."""

    def __init__(
        self,
        seats: Seats,
        policy: Policy,
        plan: Sequence[tuple[Task, EpisodeKey]],
        max_turns: int,
        patience: Patience,
    ):
        self._seats, self._policy, self._plan = seats, policy, plan
        self._max_turns, self._patience = max_turns, patience
        self.breaker: Breaker | None = None
        self.on_episode: Callable[[Episode], None] | None = None
        self._done: list[Episode | None] = [None] * len(plan)
        self._allowed, self._errors = max(1, int(patience.error_share * len(plan))), 0
        self._count = min(len(plan), seats.limit, most_open(policy, seats.processes) or seats.limit)
        self._seated, self._start = 0, asyncio.Event()
        self._queue = _Queue(len(plan))

    async def run(self) -> list[Episode]:
        """Play every episode to its end."""
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(self._count):
                    group.create_task(self._lane())
        except BaseExceptionGroup as several:
            first = _first(several)
            raise first from first.__cause__
        return _complete(self._done)

    async def _lane(self) -> None:
        async with self._seats.take() as seat:
            await self._everyone_seated()
            while (waiting := await self._queue.get()) is not None:
                number, attempts = waiting
                task, key = self._plan[number]
                facts = self._seats.of(task).facts
                # A cut reply does not reach the environment and still uses up a turn of its limit.
                most = min(self._max_turns, facts.max_turns or self._max_turns)
                episode = await play(seat, self._policy, task, key, facts.instructions, most)
                again = settled(episode, attempts, self._patience)
                if again is not None:
                    self._queue.put_back(number, *again)
                else:
                    self._done[number] = episode
                    self._finish(episode)

    def _finish(self, episode: Episode) -> None:
        self._errors += episode.ending.is_error
        if self.on_episode is not None:
            self.on_episode(episode)
        if self.breaker is not None:
            self.breaker.note(episode)
        if self._errors > self._allowed:
            raise TooManyErrors(complaint(self._errors, f"{len(self._plan)}", episode, self._patience.allowed_by))

    async def _everyone_seated(self) -> None:
        # All lanes begin together, so that an engine that waits for every open episode sees all of them.
        self._seated += 1
        if self._seated == self._count:
            self._start.set()
        await self._start.wait()


def settled(episode: Episode, earlier: int, patience: Patience) -> tuple[int, float] | None:
    """Decide on a retry after an attempt; None if the attempt stands, which then names its attempts.

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
