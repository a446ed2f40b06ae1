"""Episodes that clients play from elsewhere: open under ids that nobody guesses, and closed when nobody plays on."""

import asyncio
import secrets
import sys
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self, TypeVar

from manyturn.envs.contract.random_keys import generator, seed_of
from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.hosting.handle.env_handle import Answer, EnvError, PlaceLost
from manyturn.envs.hosting.local.seats import Seat, Seats
from manyturn.serving.error_replies import Refusal
from manyturn.serving.wire_state import Moment
from manyturn.terminal.escape import visible

T = TypeVar("T")

LONGEST_TEXT = 1_000_000  # characters of an action, as in ``TextSpace``
MOST_SEED = 2**63 - 1
MOST_LISTED = 1000  # tasks in one answer
_END_SECONDS, _LIST_SECONDS = 1.0, 60.0
_OVER_KEPT = 4  # episodes that are over and still known, so that their clients are told so, for each that may be open


@dataclass(eq=False)
class _Open:
    id: str
    task: Task
    seed: int
    touched: float
    seat: Seat | None = None  # None once it is over
    stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    busy: bool = True
    abandoned: bool = False  # whoever asked for it has hung up
    last: Moment | None = None
    text: str | None = None  # the action that led to ``last``
    lost: Refusal | None = None


class Episodes:
    """Episodes of one environment, for any number of clients; use it in one event loop, with ``async with``.

    Args:
        seats: where they run; ``limit`` of them at once.
        splits: that clients may play, and no others; tasks are drawn from the first if a client names neither task nor
            split.
        seed: seeds of episodes whose clients name none derive from it.
        idle: seconds without a request after which an episode is closed.
    """

    def __init__(self, seats: Seats, splits: Sequence[str], seed: int, idle: float):
        if idle <= 0:
            raise ValueError(f"idle = {idle} must be above 0")
        for split in splits:
            if split not in seats.facts.splits:
                raise ValueError(f"{seats.facts.name} has no split {split!r}; it has {', '.join(seats.facts.splits)}")
        self.seats, self.splits, self.split, self.idle = seats, tuple(splits), splits[0], idle
        self._seed, self._begun = seed, 0
        self._episodes: dict[str, _Open] = {}
        self._work: set[asyncio.Task[Any]] = set()
        self._closed = False

    async def __aenter__(self) -> Self:
        self._reaper = asyncio.create_task(self._reap())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._closed = True
        self._reaper.cancel()
        if self._work:
            await asyncio.wait(self._work, timeout=_END_SECONDS)  # what hangs ends with the seats
        for opened in list(self._episodes.values()):
            await self._leave(opened)

    @property
    def open(self) -> int:
        """Number of episodes that hold a seat, or are about to."""
        return sum(opened.busy or opened.seat is not None for opened in self._episodes.values())

    async def begin(self, task: str | None = None, split: str | None = None, seed: int | None = None) -> Moment:
        """Begin an episode of a task, or of one that the seed draws from the split. Raises Refusal.

        The same task and seed give what ``reset`` of the environment gives in any other process.
        """
        if self._closed:
            raise Refusal("closing", "the server ends: begin the episode at another")
        if seed is not None and not 0 <= seed <= MOST_SEED:
            raise Refusal("bad_request", f"a seed is a whole number from 0 to 2**63 - 1, not {seed}")
        if seed is None:
            self._begun += 1
            seed = seed_of("serve", self._seed, self._begun) % 2**53  # which JSON carries in every language
        picked = await self._listed(partial(self._pick, task, split, seed)), seed
        await self._close_idle()
        if self.open >= self.seats.limit:
            raise Refusal("full", f"{self.seats.limit} episodes are open, the most that this server holds: try later")
        # Nothing is awaited from the count above to here: who comes next finds one seat less.
        opened = _Open(secrets.token_hex(8), *picked, asyncio.get_running_loop().time())
        self._episodes[opened.id] = opened
        try:
            return await self._through(self._open(opened))
        except asyncio.CancelledError:
            opened.abandoned = True
            raise
        except Exception:
            self._episodes.pop(opened.id, None)  # nobody has been told its id
            raise

    async def act(self, episode: str, text: str, turn: int | None = None) -> Moment:
        """Play a turn. Raises Refusal.

        Args:
            turn: how many turns had been played when the client chose this action. If others have been played since,
                it is refused as stale. The same turn and text once more get the same answer: an answer that was lost
                on its way can be asked for again.
        """
        opened = self._find(episode)
        if opened.busy:
            raise Refusal("busy", "an earlier request of this episode is still being answered: wait for it")
        if opened.lost is not None:
            raise opened.lost.again()
        assert opened.last is not None
        if turn is not None and turn == opened.last.turn - 1 and text == opened.text:
            return opened.last
        if opened.seat is None:
            raise Refusal("ended", "the episode has ended: begin another")
        if turn is not None and turn != opened.last.turn:
            raise Refusal(
                "stale", f"{opened.last.turn} turns of this episode have been played, not {turn}: begin one of your own"
            )
        _check_text(text)
        opened.busy, opened.touched = True, asyncio.get_running_loop().time()
        return await self._through(self._play(opened, opened.seat, text))

    async def leave(self, episode: str) -> None:
        """Close an episode. Raises Refusal if there is none, or if it is busy."""
        opened = self._find(episode)
        if opened.busy:
            raise Refusal("busy", "an earlier request of this episode is still being answered: wait for it")
        await self._leave(opened)
        del self._episodes[opened.id]

    async def abandon(self, episode: str) -> None:
        """Close an episode whose client is gone, as soon as its turn has been played."""
        opened = self._episodes.get(episode)
        if opened is not None and opened.busy:
            opened.abandoned = True
        elif opened is not None:
            del self._episodes[episode]
            await self._leave(opened)

    def touch(self, episode: str) -> None:
        """Count as a request of an episode, so that it does not fall idle. Raises Refusal."""
        self._find(episode).touched = asyncio.get_running_loop().time()

    def now(self, episode: str) -> Moment:
        """State of an episode. Raises Refusal."""
        opened = self._find(episode)
        if opened.last is None or opened.lost is not None:
            raise opened.lost.again() if opened.lost else Refusal("busy", "the episode is about to begin")
        return opened.last

    async def tasks(self, split: str | None, first: int, count: int) -> tuple[list[str], int]:
        """Ids of some tasks of a split, and how many it has. Raises Refusal."""
        if first < 0 or not 1 <= count <= MOST_LISTED:
            raise Refusal("bad_request", f"first is at least 0 and count from 1 to {MOST_LISTED}")

        def page() -> tuple[list[str], int]:
            all_tasks = self._tasks(split)
            return [task.id for task in all_tasks[first : first + count]], len(all_tasks)

        return await self._listed(page)

    # ---- which task -----------------------------------------------------------------------------------------

    async def _listed(self, question: Callable[[], T]) -> T:
        """Answer of the environment's lists of tasks, beside the event loop: a stranger's may take their time."""
        if self.seats.lister is None:
            return question()
        answer = asyncio.get_running_loop().run_in_executor(self.seats.lister, question)
        try:
            async with asyncio.timeout(_LIST_SECONDS):
                return await answer
        except TimeoutError:
            text = f"the environment did not list its tasks within {_LIST_SECONDS:g} s: try later"
            raise Refusal("infra_error", text) from None

    def _tasks(self, split: str | None):
        split = split or self.split
        if split in self.seats.facts.splits and split not in self.splits:
            only = " and ".join(self.splits)
            raise Refusal("bad_request", f"this server plays {only} only: ask for that, or start another with {split}")
        try:
            return self.seats.tasks(split)
        except ValueError as error:  # such as NeedsSetup
            raise Refusal("bad_request", str(error)) from None

    def _pick(self, named: str | None, split: str | None, seed: int) -> Task:
        if named is None:
            tasks = self._tasks(split)
            if not tasks:
                raise Refusal("bad_request", f"the split {split or self.split} has no tasks: name another")
            return tasks[int(generator("draw", seed).integers(len(tasks)))]  # as ``TextEnv.reset`` draws
        for place in [split] if split else self.splits:
            try:
                tasks = self._tasks(place)
            except Refusal:
                if split:
                    raise
                continue  # a split that this machine lacks does not have it
            finder = getattr(tasks, "find", None)
            match = finder(named) if finder else next((task for task in tasks if task.id == named), None)
            if match is not None:
                return match
        raise Refusal("bad_request", f"no task {named[:200]!r}{f' in split {split}' if split else ''}")

    # ---- turns ----------------------------------------------------------------------------------------------

    async def _open(self, opened: _Open) -> Moment:
        opened.seat = await opened.stack.enter_async_context(self.seats.take())
        answer = await self._answer(opened, opened.seat.reset(opened.task, opened.seed), "when it began")
        task, identity = opened.task, self.seats.identity
        moment = Moment(opened.id, task.id, task.split, opened.seed, 0, answer, identity)
        return await self._settle(opened, moment)

    async def _play(self, opened: _Open, seat: Seat, text: str) -> Moment:
        assert opened.last is not None
        turn = opened.last.turn + 1
        answer = await self._answer(opened, seat.step(text), f"in turn {turn}")
        opened.text = text
        return await self._settle(opened, opened.last._replace(turn=turn, answer=answer))

    async def _settle(self, opened: _Open, moment: Moment) -> Moment:
        opened.last, opened.busy, opened.touched = moment, False, asyncio.get_running_loop().time()
        if moment.answer.ended or opened.abandoned:
            await self._leave(opened)
        return moment

    async def _answer(self, opened: _Open, question: Coroutine[Any, Any, Answer], when: str) -> Answer:
        """The answer of the environment; without one the episode is lost, and its client is told no secrets of it."""
        try:
            answer = await question
            answer.observation.encode()
            return answer
        except Exception as error:
            raised = isinstance(error, EnvError | UnicodeEncodeError) and not isinstance(error, PlaceLost)
            kind = "env_error" if raised else "infra_error"
            what = "the environment raised" if raised else "the environment's process failed"
            first = (str(error).splitlines() or [type(error).__name__])[0]
            print(visible(f"manyturn: {kind} {when} of {opened.task.id}, seed {opened.seed}: {first}"), file=sys.stderr)
            text = f"{what} {when} of {opened.task.id}: the episode is lost and has no result; begin another"
            opened.lost, opened.busy = Refusal(kind, text), False
            await self._leave(opened)
            raise opened.lost.again() from error

    async def _through(self, work: Coroutine[Any, Any, T]) -> T:
        """Run work to its end even if the client hangs up, and return its result: no turn is half played."""
        task = asyncio.create_task(work)
        self._work.add(task)
        task.add_done_callback(self._work.discard)
        task.add_done_callback(lambda done: done.cancelled() or done.exception())  # nobody may be left to hear it
        return await asyncio.shield(task)

    # ---- who is still there ---------------------------------------------------------------------------------

    def _find(self, episode: str) -> _Open:
        opened = self._episodes.get(episode)
        if opened is None:
            raise Refusal("no_episode", "there is no such episode: it was left, was idle too long, or never began")
        return opened

    async def _leave(self, opened: _Open) -> None:
        """Give the seat back; what is over stays known for a while."""
        opened.seat = None
        await opened.stack.aclose()
        over = [one for one in self._episodes.values() if one.seat is None and not one.busy]
        for one in over[: max(0, len(over) - _OVER_KEPT * self.seats.limit)]:
            del self._episodes[one.id]

    async def _close_idle(self) -> None:
        now = asyncio.get_running_loop().time()
        for opened in [one for one in self._episodes.values() if not one.busy and now - one.touched > self.idle]:
            self._episodes.pop(opened.id, None)
            await self._leave(opened)

    async def _reap(self) -> None:
        with suppress(asyncio.CancelledError):
            while True:
                await asyncio.sleep(min(self.idle / 4, 10.0))
                await self._close_idle()


def _check_text(text: str) -> None:
    if len(text) > LONGEST_TEXT:
        raise Refusal("bad_request", f"an action has at most {LONGEST_TEXT:,} characters, and this one {len(text):,}")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Refusal("bad_request", "the action holds half of a surrogate pair, which is no text") from None
