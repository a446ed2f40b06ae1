"""A run in asynchronous order without its episodes: what their seconds come to, by a clock that only counts.

It asks the ``Schedule`` that the training loop asks. Kills are those of the whole process: what was being played is
lost, a step that was being learnt from is learnt from again, and so is every one since the last checkpoint, from the
journals of its episodes.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count

from manyturn.trainers.play.schedule import EpisodePlace, Schedule


@dataclass(frozen=True)
class Workload:
    """What a run has to do, and where.

    Attributes:
        episodes: of a step.
        steps: of the run.
        staleness: most steps between the weights that begin an episode and those that learn from it.
        places: episodes that may be open together.
        play_seconds: of an episode, at each attempt.
        learn_seconds: of a step's update, the new weights' way to the engine included.
        checkpoint_every: steps between two checkpoints.
    """

    episodes: int
    steps: int
    staleness: int
    places: int
    play_seconds: Callable[[EpisodePlace], float]
    learn_seconds: Callable[[int], float]
    checkpoint_every: int = 1


@dataclass
class Simulated:
    """What happened.

    Attributes:
        seconds: until the last step was done.
        figures: of each step that was done, those that were done again included; see ``Schedule.learnt``.
        learnt: the episodes of each step as it was done last.
        ages: of each of these, steps between the weights that it began with and those that learnt from it.
        played: how often each episode came to its end.
        most_open: episodes that were open together.
    """

    seconds: float = 0.0
    figures: list[dict[str, float]] = field(default_factory=list)
    learnt: dict[int, list[EpisodePlace]] = field(default_factory=dict)
    ages: dict[int, list[int]] = field(default_factory=dict)
    played: Counter[EpisodePlace] = field(default_factory=Counter)
    most_open: int = 0


def simulate(work: Workload, kills: Sequence[float] = ()) -> Simulated:
    """Play and learn to the end.

    Args:
        kills: seconds at which the process is killed; it begins again at once.

    Raises:
        RuntimeError: nothing can begin and nothing can end, and the run is not over.
    """
    found, journal, saved = Simulated(), dict[EpisodePlace, int](), 0
    for kill in [*sorted(kills), float("inf")]:
        saved = _life(work, found, journal, saved, kill)
        if saved == work.steps:
            break
    return found


def _life(work: Workload, found: Simulated, journal: dict[EpisodePlace, int], saved: int, kill: float) -> int:
    """From a checkpoint to the next kill, or to the end; returns the step of the last checkpoint then."""
    now, numbers = found.seconds, count()
    schedule = Schedule(work.episodes, work.steps, work.staleness, work.places, saved, dict(journal), clock=lambda: now)
    events: list[tuple[float, int, EpisodePlace | None]] = []  # when, a number that keeps their order, and what ends
    begun = dict(journal)
    while schedule.done < work.steps:
        while (place := schedule.next()) is not None:
            begun[place] = schedule.done
            heappush(events, (now + work.play_seconds(place), next(numbers), place))
        found.most_open = max(found.most_open, schedule.open)
        if schedule.is_ready:
            step = schedule.done + 1
            found.learnt[step] = schedule.learn()
            found.ages[step] = [step - 1 - begun[place] for place in found.learnt[step]]
            heappush(events, (now + work.learn_seconds(step), next(numbers), None))
        if not events:
            raise RuntimeError(f"step {schedule.done + 1} waits for nothing that could end")
        when, _, place = heappop(events)
        if when > kill:
            found.seconds = max(now, kill)
            return saved
        now = found.seconds = when
        if place is not None:
            schedule.ends(place)
            found.played[place] += 1
            journal[place] = begun[place]
            continue
        found.figures.append(schedule.learnt())
        if schedule.done % work.checkpoint_every == 0 or schedule.done == work.steps:
            saved = schedule.done
            for old in [place for place in journal if place.step <= saved]:
                del journal[old]
    return saved
