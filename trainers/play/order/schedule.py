"""Schedule of the asynchronous order: the start of each episode, and the groups that a step learns from.

A step learns from T groups of episodes, all members of each, and steps follow one another. The group in place n of
those that are left, from 0, may begin once

    n < T (staleness + 1)

- ``drawn``: each step learns from the T groups that were drawn first. A group of step s then begins where at most
  ``staleness`` steps lie before s, and from then on no delay can make it older. Nothing is dropped, and no episode
  overtakes another on its way to the learner, which would favour short ones. Staleness 0 is the synchronous order.
- ``any``: each step learns from complete groups, of these from those that began first. A step waits for more where the
  groups that it would leave could not all be learnt from in time: where for some age more of them are as old as that
  than the steps that are left to them can take.
- ``drop``: as ``any``, but no step waits. A group that would be too old for the next step is dropped, and another one
  is drawn for it.

So the bound holds for each episode and not only in the mean.

Here is the decision alone: no episode is played, nothing waits, and the time is that of the clock that is given. The
training loop and its simulation (``simulation.py``) ask the same code.
"""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

Consume = Literal["drawn", "any", "drop"]


class EpisodePlace(NamedTuple):
    """One episode of a run: the step that it is drawn for, from 1, and its number among the step's, from 0."""

    step: int
    number: int


class GroupPlace(NamedTuple):
    """A task's episodes: the step that they are drawn for, from 1, and the task's number among the step's, from 0."""

    step: int
    number: int


class StepChoice(NamedTuple):
    """The fate of groups when a step is learnt from: these are learnt from, those are dropped."""

    learnt: Sequence[GroupPlace]
    dropped: Sequence[GroupPlace]


@dataclass(frozen=True)
class Past:
    """The past of a run that is resumed.

    Attributes:
        done: steps that are done.
        first: the first step for which a group was drawn that is left.
        gone: groups from there on that are not left: they were learnt from, or dropped.
        ended: episodes that have ended and were not learnt from, with the steps that were done when each began.
        choices: those of the steps after ``done``, which were made before the process ended and hold again.
    """

    done: int = 0
    first: int = 1
    gone: frozenset[GroupPlace] = frozenset()
    ended: Mapping[EpisodePlace, int] = field(default_factory=dict)
    choices: Sequence[StepChoice] = ()


NOTHING = Past()


class ScheduleSize(NamedTuple):
    """The size of a run and of its steps.

    Attributes:
        episodes: of a step, E.
        steps: of the run.
        staleness: most steps between the weights that an episode begins with and those that learn from it.
        places: episodes that may be open together.
        groups: of a step, N; in the order ``drawn`` nothing depends on them.
        consume: what a step learns from.
    """

    episodes: int
    steps: int
    staleness: int
    places: int
    groups: int = 1
    consume: Consume = "drawn"


class Schedule:
    """The state of play and learning.

    Args:
        size: of the run and its steps.
        past: of a run that goes on.
        clock: seconds.

    Attributes:
        done: steps whose weights are drawn with.
        first, gone: see ``Past``.
        offer: groups that the next step would learn from; None where it has to wait.
    """

    def __init__(
        self,
        size: ScheduleSize,
        past: Past = NOTHING,
        clock: Callable[[], float] = time.monotonic,
    ):
        episodes, groups = size.episodes, size.groups
        if episodes < 1 or size.places < 1 or size.staleness < 0 or groups < 1 or episodes % groups:
            raise ValueError(
                f"{groups} groups of {episodes} episodes in {size.places} places, {size.staleness} steps old: nothing "
                "can be played"
            )
        self.done, self.first, self.gone = past.done, past.first, set(past.gone)
        self._episodes, self._steps, self._staleness = episodes, size.steps, size.staleness
        self._groups, self._group, self._consume = groups, episodes // groups, size.consume
        self._places = min(size.places, episodes * (size.staleness + 1))
        self._begun = dict[GroupPlace, dict[EpisodePlace, int]]()  # of each group, steps that were done when each began
        self._oldest = dict[GroupPlace, int]()  # of each group, the least of them
        self._ended, self._count = set(past.ended), Counter(map(self.group_of, past.ended))
        for place, began in past.ended.items():
            self._note(place, began)
        self._complete = {group for group, count in self._count.items() if count == self._group}
        self._open, self._again = 0, list(past.choices)
        self._next, self._room = EpisodePlace(self.first, 0), self._most()
        self._choice: StepChoice | None = None  # of the step that is being learnt from
        self.offer: list[GroupPlace] | None = None
        self._look()
        self._clock, self._now = clock, clock()
        self._since, self._idle_learner, self._idle_places = self._now, 0.0, 0.0

    def group_of(self, place: EpisodePlace) -> GroupPlace:
        return GroupPlace(place.step, place.number // self._group)

    def members(self, group: GroupPlace) -> list[EpisodePlace]:
        first = group.number * self._group
        return [EpisodePlace(group.step, number) for number in range(first, first + self._group)]

    @property
    def newest(self) -> int:
        """The last step for which a group was drawn that may begin."""
        return self.first + -(-self._room // self._groups) - 1

    @property
    def overtaken(self) -> list[GroupPlace]:
        """Groups that have begun and are left, though one that was drawn later is not."""
        last = max(self.gone, default=GroupPlace(0, 0))
        return [group for group in self._begun if group < last]

    @property
    def open(self) -> int:
        """Episodes that are being played."""
        return self._open

    @property
    def is_ready(self) -> bool:
        """True if the next step can be learnt from now."""
        return self._choice is None and self.done < self._steps and self.offer is not None

    def next(self) -> EpisodePlace | None:
        """The next episode in order, which is open from now on; None where none may begin."""
        if self._again:  # what these were drawn with comes about again first
            return None
        while self._next in self._ended or self.group_of(self._next) in self.gone:
            self._go_on()
        group = self.group_of(self._next)
        if self._index(group) >= self._room or self.open >= self._places:
            return None
        self._pass_time()
        place = self._next
        self._note(place, self.done)
        self._open += 1
        self._go_on()
        return place

    def begins(self, place: EpisodePlace) -> int:
        """An open episode begins, perhaps once more after an error; returns how many steps are done."""
        self._note(place, self.done)
        return self.done

    def ends(self, place: EpisodePlace) -> None:
        """An open episode has ended, and is ready to be learnt from."""
        group = self.group_of(place)
        if place not in self._begun.get(group, ()) or place in self._ended:
            raise ValueError(f"{place} is not open")
        self._pass_time()
        self._ended.add(place)
        self._open -= 1
        self._count[group] += 1
        if self._count[group] == self._group:
            self._complete.add(group)
            self._look()

    def learn(self) -> StepChoice:
        """Begin to learn from the next step; returns what becomes of which groups.

        Open episodes of groups that are dropped are open no longer.
        """
        learnt = self.offer
        if not self.is_ready or learnt is None:
            raise ValueError(f"step {self.done + 1} cannot be learnt from: {len(self._complete)} groups are complete")
        self._pass_time()
        dropped = self._again.pop(0).dropped if self._again else self._late(learnt)
        self._choice = StepChoice(learnt, dropped)
        for group in dropped:
            members = self._forget(group)
            self._open -= len(members) - self._count.pop(group, 0)
            self._ended -= members.keys()
        self.gone.update(dropped)
        self._complete.difference_update(learnt, dropped)
        return self._choice

    def learnt(self) -> dict[str, float]:
        """The step is done, and its weights are drawn with; returns what the metrics say of it."""
        if self._choice is None:
            raise ValueError("no step is being learnt from")
        self._pass_time()
        (learnt, dropped), self._choice = self._choice, None
        ages = [self.done - began for group in learnt for began in self._forget(group).values()]
        for group in learnt:
            self._ended.difference_update(self.members(group))
            del self._count[group]
        self.gone.update(learnt)
        while all(GroupPlace(self.first, number) in self.gone for number in range(self._groups)):
            self.gone -= {GroupPlace(self.first, number) for number in range(self._groups)}
            self.first += 1
        self.done += 1
        self._next, self._room = max(self._next, EpisodePlace(self.first, 0)), self._most()
        self._look()
        passed = self._now - self._since
        idle_learner, idle_places = self._idle_learner, self._idle_places / self._places
        self._since, self._idle_learner, self._idle_places = self._now, 0.0, 0.0
        figures = {
            "staleness": sum(ages) / len(ages),
            "staleness_max": max(ages),
            "learner_idle": idle_learner / passed if passed else 0.0,
            "players_idle": idle_places / passed if passed else 0.0,
            "open_episodes": self.open,
            "waiting_episodes": len(self._ended),
        }
        if self._consume != "drawn":
            figures["dropped"] = len(dropped) / (len(learnt) + len(dropped))
        return figures

    def _most(self) -> int:
        """Groups from ``first`` on that may have begun: as many as are gone, and as many as may be left."""
        return len(self.gone) + self._groups * min(self._staleness + 1, self._steps - self.done)

    def _index(self, group: GroupPlace) -> int:
        return (group.step - self.first) * self._groups + group.number

    def _go_on(self) -> None:
        step, number = self._next
        self._next = EpisodePlace(step, number + 1) if number + 1 < self._episodes else EpisodePlace(step + 1, 0)

    def _note(self, place: EpisodePlace, began: int) -> None:
        group = self.group_of(place)
        members = self._begun.setdefault(group, {})
        members[place] = began
        self._oldest[group] = min(members.values())

    def _forget(self, group: GroupPlace) -> dict[EpisodePlace, int]:
        self._oldest.pop(group, None)
        return self._begun.pop(group, {})

    def _look(self) -> None:
        """See what the next step would learn from: after each step, and when one more group is complete."""
        self.offer = self._chosen()

    def _chosen(self) -> list[GroupPlace] | None:
        """The groups of the next step; None where it has to wait."""
        if self._again:
            return list(self._again[0].learnt)
        if len(self._complete) < self._groups:
            return None
        if self._consume == "drawn":
            first = sorted(self._complete)[: self._groups]
            return first if self._index(first[-1]) < self._groups else None
        chosen = sorted(self._complete, key=lambda group: (self._oldest[group], group))[: self._groups]
        return sorted(chosen) if self._consume == "drop" or self._leaves_time(chosen) else None

    def _leaves_time(self, chosen: Sequence[GroupPlace]) -> bool:
        """True if all groups that are not chosen for the next step can be learnt from before they are too old."""
        last = Counter(self._oldest[group] + self._staleness for group in self._oldest.keys() - set(chosen))
        due = 0  # groups that some step has to take, at the latest the one that comes after so many others
        for before in sorted(last):
            due += last[before]
            if due > self._groups * (before - self.done):
                return False
        return True

    def _late(self, learnt: Sequence[GroupPlace]) -> list[GroupPlace]:
        """Groups that are not learnt from now, and would be too old for the step after this."""
        if self._consume != "drop":
            return []
        remaining = sorted(self._oldest.keys() - set(learnt))
        return [group for group in remaining if self.done + 1 - self._oldest[group] > self._staleness]

    def _pass_time(self) -> None:
        """Count the time since the last change, during which nothing has changed."""
        now = self._clock()
        passed, self._now = now - self._now, now
        self._idle_places += passed * (self._places - self.open)
        if self._choice is None and not self.is_ready:  # a validation or a checkpoint is no waiting for episodes
            self._idle_learner += passed
