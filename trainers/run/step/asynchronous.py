"""The asynchronous order: episodes of later steps are played while a step is learnt from.

The learner works in a thread of its own, on weights that no engine draws with. When a step is done the engines load
its weights while episodes go on: their next replies are drawn with the new ones, those that are being drawn begin
again, and what was computed of their prompts is computed again. So a reply is of one version, an episode may be of
several, and the ledger has the version of each turn.

``Schedule`` says what may begin and what is learnt from. The tasks of step s + k + 1 are drawn when step s is done, by
what it has found, so that which tasks are played does not depend on how long anything took, unless some are dropped.
"""

import asyncio
from collections.abc import Coroutine, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar

from manyturn.agents.play.concurrent_episodes import settled
from manyturn.agents.play.episode import Episode, most_open, play
from manyturn.agents.play.error_limit import TooManyErrors, complaint
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.envs.contract.tasks.task import Task
from manyturn.trainers.play.order.length_estimate import counted, mean_length
from manyturn.trainers.play.order.schedule import EpisodePlace, GroupPlace, Past, Schedule, ScheduleSize
from manyturn.trainers.play.rollout.rollout_batch import plan_groups
from manyturn.trainers.play.rollout.spread_filter import filtered
from manyturn.trainers.record.resource_use import Stopwatch
from manyturn.trainers.record.run_folder import RunFolder
from manyturn.trainers.record.run_state import State
from manyturn.trainers.run.setup.run_builder import Run
from manyturn.trainers.run.step.async_episode_log import Journals
from manyturn.trainers.run.step.first_step import check_first_step
from manyturn.trainers.run.step.learning import Lesson, replays_of
from manyturn.trainers.run.step.logprob_mismatch import check_present_version
from manyturn.trainers.run.step.rollout_collection import judged, most_turns
from manyturn.trainers.run.step.task_draw import draw_tasks, forget_grown, task_of

Result = TypeVar("Result")


class Ahead:
    """Plays from when it is entered until it is left, and takes step after step, as an async context manager."""

    def __init__(self, run: Run, state: State, folder: RunFolder):
        rollout, order = run.config.rollout, run.config.order
        self._run, self._state, self._folder = run, state, folder
        self._count, self._policy = rollout.tasks * rollout.group, run.advised()
        self._allowed = max(1, int(run.patience.error_share * self._count))
        self._plans = dict[int, list[tuple[Task, EpisodeKey]]]()
        self._played = dict[int, dict[int, Episode]]()
        self._journals = Journals(
            folder,
            Past(state.step, state.first_left, frozenset(GroupPlace(*group) for group in state.gone)),
            self._count,
            self._allowed,
            rollout.tasks,
            chosen=order.consume != "drawn",
        )
        places = min(run.seats.limit, most_open(self._policy, run.seats.processes) or run.seats.limit)
        size = ScheduleSize(self._count, run.config.steps, order.staleness, places, rollout.tasks, order.consume)
        self._schedule = Schedule(size, self._journals.past)
        self._open = dict[EpisodePlace, asyncio.Task[None]]()
        self._attempts = dict[EpisodePlace, Episode]()  # that are being played
        self._failure: BaseException | None = None
        self._changed = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="learner")
        self._drawing = run.drawing()

    async def __aenter__(self) -> Self:
        await self._drawing.__aenter__()
        try:
            self._draw()
            self._begin()
        except BaseException as error:
            await self.__aexit__(type(error), error, error.__traceback__)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in (tasks := list(self._open.values())):
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        self._thread.shutdown()
        self._journals.close()
        await self._drawing.__aexit__(kind, error, trace)

    async def step(self) -> dict[str, Any]:
        """The next step; returns its metrics. If it is cancelled before it is learnt from, nothing has changed."""
        clock, step = Stopwatch(), self._state.step + 1
        while not self._schedule.is_ready:
            if self._failure is not None:
                raise self._failure
            self._changed.clear()
            await self._changed.wait()
        waited = clock.lap("rollout")
        if step == 1:
            await check_first_step(self._run, self._episodes(self._schedule.offer or ()))
        return await _unbroken(self._learn(waited, clock))

    def _episodes(self, groups: Iterable[GroupPlace]) -> list[Episode]:
        """The episodes of complete groups."""
        places = [place for group in groups for place in self._schedule.members(group)]
        return [self._played[place.step][place.number] for place in places]

    async def _learn(self, waited: dict[str, float], clock: Stopwatch) -> dict[str, Any]:
        run, state, step, first = self._run, self._state, self._state.step + 1, self._schedule.first
        choice = self._schedule.learn()
        episodes = await judged(run, self._episodes(choice.learnt), first=step == 1)
        drawn = [state.drawn[s - first][n] for s, n in choice.learnt]
        numbers = {task_of(run, state, number).id: number for number in drawn}
        replays = replays_of(run, self._folder, state, episodes, [True] * len(episodes))
        share = run.config.rollout.spread_share
        is_kept, spread = filtered(replays.episodes, replays.is_kept, run.learning_roles, share)
        lesson = Lesson(
            step,
            replays.episodes,
            is_kept,
            numbers,
            {episode.key: None for episode in episodes},
            figures=replays.figures | spread,
            stored=replays.stored,
            imitated=replays.imitated,
        )
        memory = state.memory

        def update() -> Any:
            updates = lesson.updates(run, memory)
            alarms = check_present_version(run, updates)
            learned, remembered = lesson.learn(run, self._folder, updates, memory)
            return updates, {**alarms, **learned}, remembered

        self._journals.choose(step, choice)  # these episodes are counted on from now on
        overtakes = run.config.order.consume != "drawn"
        if overtakes:
            for what in ("learnt", "ended"):
                self._add(what, [len(episode.turns) for episode in episodes])
            self._drop(choice.dropped)
        updates, learned, remembered = await asyncio.get_running_loop().run_in_executor(self._thread, update)
        feedback = state.feedback
        counted = lesson.settle(run, state, updates, remembered)
        state.feedback = feedback + state.feedback  # of earlier steps, where all draws were made before they were done
        for trainee in run.trainees:
            await trainee.hand_over()
        order_figures = self._schedule.learnt()
        for over in range(first, self._schedule.first):
            del state.drawn[0], self._plans[over], self._played[over]
        state.lag, state.gone = step + 1 - self._schedule.first, sorted(map(list, self._schedule.gone))
        if overtakes:
            order_figures["length_bias"] = self._length_bias()
        forget_grown(state)
        self._draw()
        self._begin()
        return {
            **run.describe(episodes),
            **learned,
            **waited,
            **run.engine_figures(),
            **run.seats.figures(),
            **clock.lap("learn"),
            **counted,
            **order_figures,
            "mixed_versions": sum(_versions(episode) > 1 for episode in episodes) / len(episodes),
        }

    def _draw(self) -> None:
        """Draw the tasks of all steps of which episodes may begin."""
        run, state, rollout = self._run, self._state, self._run.config.rollout
        for step in range(self._schedule.first, self._schedule.newest + 1):
            number = step - self._schedule.first
            if number == len(state.drawn):
                tasks, memory = draw_tasks(run, state, step, rollout.tasks, state.feedback, state.memory)
                state.drawn.append(tasks)
                state.memory, state.feedback = dict(memory), []
            if step not in self._plans:
                tasks = [task_of(run, state, n) for n in state.drawn[number]]
                self._plans[step] = plan_groups(tasks, rollout.group, run.config.seed, f"train/{step}")
                self._played[step] = self._journals.episodes(step, self._plans[step])

    def _begin(self) -> None:
        """Play whatever may begin."""
        while (place := self._schedule.next()) is not None:
            task = asyncio.get_running_loop().create_task(self._play(place))
            self._open[place] = task
            task.add_done_callback(partial(self._closed, place))

    def _closed(self, place: EpisodePlace, task: asyncio.Task[None]) -> None:
        self._open.pop(place, None)
        self._attempts.pop(place, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failure = self._failure or error
        self._changed.set()

    async def _play(self, place: EpisodePlace) -> None:
        run, attempts = self._run, 0
        task, key = self._plans[place.step][place.number]
        while True:
            async with run.seats.take() as seat:
                began = self._schedule.begins(place)
                facts, most = run.seats.of(task).facts, most_turns(run, place.step)
                most = min(most, facts.max_turns or most)  # a cut reply uses up a turn of the environment's limit too
                attempt = partial(self._attempts.__setitem__, place)
                episode = await play(seat, self._policy, task, key, facts.instructions, most, attempt)
            again = settled(episode, attempts, run.patience)
            if again is None:
                break
            attempts, pause = again
            await asyncio.sleep(pause)
        self._journals.append(place, episode, began, self._schedule.done)
        self._played[place.step][place.number] = episode
        self._check(place.step, episode)
        self._schedule.ends(place)
        self._begin()

    def _drop(self, groups: Sequence[GroupPlace]) -> None:
        """End what is being played of groups that are not learnt from, and fill the places."""
        ended, cut = self._lengths(groups)
        self._add("ended", ended)
        self._add("cut", cut)
        for place in (place for group in groups for place in self._schedule.members(group)):
            if task := self._open.get(place):
                task.cancel()
        self._begin()

    def _lengths(self, groups: Iterable[GroupPlace]) -> tuple[list[int], list[int]]:
        """Turns of their episodes that have ended, and of those that are being played."""
        places = [place for group in groups for place in self._schedule.members(group)]
        ended = [self._played[place.step].get(place.number) for place in places]
        played = [self._attempts.get(place) for place, end in zip(places, ended, strict=True) if end is None]
        return [len(end.turns) for end in ended if end], [len(attempt.turns) for attempt in played if attempt]

    def _add(self, what: str, lengths: Sequence[int]) -> None:
        self._state.lengths[what] = counted(lengths, self._state.lengths.get(what, ()))

    def _length_bias(self) -> float:
        """Of all that was learnt from so far; see ``METRICS``."""
        ended, cut = self._lengths(self._schedule.overtaken)
        of = self._state.lengths
        everything = mean_length(counted(ended, of["ended"]), counted(cut, of.get("cut", ())))
        return mean_length(of["learnt"]) / everything - 1

    def _check(self, step: int, ended: Episode) -> None:
        """Raise TooManyErrors where a step, or the last episodes of all steps, have too many."""
        self._run.breaker.note(ended)
        errors = sum(episode.ending.is_error for episode in self._played[step].values())
        if ended.ending.is_error and errors > self._allowed:
            raise TooManyErrors(complaint(errors, f"{self._count}", ended, self._run.patience.allowed_by))


async def _unbroken(work: Coroutine[Any, Any, Result]) -> Result:
    """The result of work that is finished although whoever waits is cancelled: a thread cannot be stopped half-way."""
    task = asyncio.ensure_future(work)
    while not task.done():
        try:
            await asyncio.wait((task,))
        except asyncio.CancelledError:
            continue
    return task.result()


def _versions(episode: Episode) -> int:
    """The number of policy versions that drew its turns; those of policies that do not learn have no tokens."""
    spans = episode.ledger.spans if episode.ledger else []
    return len({span.version for span in spans if span.end > span.start})
