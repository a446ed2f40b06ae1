"""A run in asynchronous order without its episodes: what their seconds come to, by a clock that only counts.

It asks the ``Schedule`` that the training loop asks. Kills are those of the whole process: what was being played is
lost, a step that was being learnt from is learnt from again, and so is every one since the last checkpoint, from the
journals of its episodes.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from itertools import count

from manyturn.trainers.play.order.schedule import Consume, EpisodePlace, Past, Schedule, ScheduleSize, StepChoice


@dataclass(frozen=True)
class Workload:
    """The work of a run, and its places.

    Attributes:
        episodes: of a step.
        steps: of the run.
        staleness: most steps between the weights that begin an episode and those that learn from it.
        places: episodes that may be open together.
        play_seconds: of an episode, at each attempt.
        learn_seconds: of a step's update, the new weights' way to the engine included.
        checkpoint_every: steps between two checkpoints.
        groups: of a step.
        consume: what a step learns from; see ``Schedule``.
    """

    episodes: int
    steps: int
    staleness: int
    places: int
    play_seconds: Callable[[EpisodePlace], float]
    learn_seconds: Callable[[int], float]
    checkpoint_every: int = 1
    groups: int = 1
    consume: Consume = "drawn"


@dataclass
class Simulated:
    """The course of a simulated run.

    Attributes:
        seconds: until the last step was done.
        figures: of each step that was done, those that were done again included; see ``Schedule.learnt``.
        learnt: the episodes of each step as it was done last.
        ages: of each of these, steps between the weights that it began with and those that learnt from it.
        dropped: episodes that were drawn for nothing, by the step that they were too old for.
        played: how often each episode came to its end.
        most_open: episodes that were open together.
    """

    seconds: float = 0.0
    figures: list[dict[str, float]] = field(default_factory=list)
    learnt: dict[int, list[EpisodePlace]] = field(default_factory=dict)
    ages: dict[int, list[int]] = field(default_factory=dict)
    dropped: dict[int, list[EpisodePlace]] = field(default_factory=dict)
    played: Counter[EpisodePlace] = field(default_factory=Counter)
    most_open: int = 0


def simulate(work: Workload, kills: Sequence[float] = (), result: Simulated | None = None) -> Simulated:
    """Play and learn to the end.

    Args:
        kills: seconds at which the process is killed; it begins again at once.
        result: receives the course of the simulation while it runs.

    Raises:
        RuntimeError: nothing can begin and nothing can end, and the run is not over.
    """
    result, past, journal = result or Simulated(), Past(), _Journal()
    for kill in [*sorted(kills), float("inf")]:
        past = _life(work, result, journal, past, kill)
        if past.done == work.steps:
            break
    return result


@dataclass
class _Journal:
    """The record of a killed process: ended episodes, with the steps that were done when each began, and choices."""

    ended: dict[EpisodePlace, int] = field(default_factory=dict)
    choices: dict[int, StepChoice] = field(default_factory=dict)

    def after(self, schedule: Schedule) -> Past:
        """The past with which a process resumes at the present step."""
        ended = {
            place: began
            for place, began in self.ended.items()
            if place.step >= schedule.first and schedule.group_of(place) not in schedule.gone
        }
        self.ended = ended
        return Past(schedule.done, schedule.first, frozenset(schedule.gone), ended)

    def behind(self, work: Workload, saved: Past) -> Past:
        """The same after a kill; in the order of drawing what is learnt from follows from what has ended."""
        choices = [self.choices[step] for step in sorted(self.choices) if step > saved.done]
        return replace(saved, ended=dict(self.ended), choices=[] if work.consume == "drawn" else choices)


def _life(work: Workload, result: Simulated, journal: _Journal, saved: Past, kill: float) -> Past:
    """From a checkpoint to the next kill, or to the end; returns what the last checkpoint says then."""
    now, numbers = result.seconds, count()
    past = journal.behind(work, saved)
    size = ScheduleSize(work.episodes, work.steps, work.staleness, work.places, work.groups, work.consume)
    schedule = Schedule(size, past, clock=lambda: now)
    events: list[tuple[float, int, EpisodePlace | None]] = []  # when, a number that keeps their order, and what ends
    begun, open_now = dict(journal.ended), set[EpisodePlace]()
    while schedule.done < work.steps:
        while (place := schedule.next()) is not None:
            begun[place] = schedule.done
            open_now.add(place)
            heappush(events, (now + work.play_seconds(place), next(numbers), place))
        result.most_open = max(result.most_open, schedule.open)
        if schedule.is_ready:
            step = schedule.done + 1
            journal.choices[step] = learnt, dropped = schedule.learn()
            result.learnt[step] = [place for group in learnt for place in schedule.members(group)]
            result.dropped[step] = [place for group in dropped for place in schedule.members(group)]
            result.ages[step] = [step - 1 - begun[place] for place in result.learnt[step]]
            open_now.difference_update(result.dropped[step])
            heappush(events, (now + work.learn_seconds(step), next(numbers), None))
            continue  # what was dropped has left its place
        if not events:
            raise RuntimeError(f"step {schedule.done + 1} waits for nothing that could end")
        when, _, place = heappop(events)
        if when > kill:
            result.seconds = max(now, kill)
            return saved
        if place is not None and place not in open_now:
            continue
        now = result.seconds = when
        if place is not None:
            open_now.remove(place)
            schedule.ends(place)
            result.played[place] += 1
            journal.ended[place] = begun[place]
            continue
        result.figures.append(schedule.learnt())
        if schedule.done % work.checkpoint_every == 0 or schedule.done == work.steps:
            saved = journal.after(schedule)
    return saved
