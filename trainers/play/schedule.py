"""When an episode may begin, and when a step may be learnt from, in asynchronous order.

Step s learns from its own E episodes, all of them, and steps follow one another. An episode of step s may begin once

    s - 1 - done <= staleness        done: steps whose weights the engine draws with

From then on no delay can make it older: it is learnt from in step s, by weights of s - 1 steps. So the bound holds for
each episode and not only in the mean, nothing has to be dropped, and no episode overtakes another on its way to the
learner, which would favour short ones. Staleness 0 is the synchronous order.

Here is the decision alone: no episode is played, nothing waits, and the time is that of the clock that is given. The
training loop and its simulation (``simulation.py``) ask the same code.
"""

import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import NamedTuple


class EpisodePlace(NamedTuple):
    """One episode of a run: the step that learns from it, from 1, and its number among the step's, from 0."""

    step: int
    number: int


class Schedule:
    """The state of play and learning.

    Args:
        episodes: of a step, E.
        steps: of the run.
        staleness: most steps between the weights that an episode begins with and those that learn from it.
        places: episodes that may be open together.
        done: steps that are done already.
        ended: episodes of later steps that have ended already, with the number of steps that was done when each began.
        clock: seconds.

    Attributes:
        done: steps whose weights are drawn with.
    """

    def __init__(
        self,
        episodes: int,
        steps: int,
        staleness: int,
        places: int,
        done: int = 0,
        ended: Mapping[EpisodePlace, int] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ):
        if episodes < 1 or places < 1 or staleness < 0:
            raise ValueError(f"{episodes} episodes in {places} places, {staleness} steps old: nothing can be played")
        self.done, self._episodes, self._steps, self._staleness = done, episodes, steps, staleness
        self._places = min(places, episodes * (staleness + 1))
        self._begun = dict(ended or {})  # place -> steps that were done when it began, of those not learnt from yet
        self._ended = set(self._begun)
        self._count = Counter(place.step for place in self._ended)
        self._next = EpisodePlace(done + 1, 0)
        self._learning, self._clock, self._now = False, clock, clock()
        self._since, self._idle_learner, self._idle_places = self._now, 0.0, 0.0

    @property
    def newest(self) -> int:
        """The last step of which episodes may begin."""
        return min(self._steps, self.done + 1 + self._staleness)

    @property
    def open(self) -> int:
        """Episodes that are being played."""
        return len(self._begun) - len(self._ended)

    @property
    def is_ready(self) -> bool:
        """Whether the next step can be learnt from now."""
        step = self.done + 1
        return not self._learning and step <= self._steps and self._count[step] == self._episodes

    def next(self) -> EpisodePlace | None:
        """The next episode in order, which is open from now on; None where none may begin."""
        while self._next in self._ended:
            self._go_on()
        if self._next.step > self.newest or self.open >= self._places:
            return None
        self._pass_time()
        place = self._next
        self._begun[place] = self.done
        self._go_on()
        return place

    def _go_on(self) -> None:
        step, number = self._next
        self._next = EpisodePlace(step, number + 1) if number + 1 < self._episodes else EpisodePlace(step + 1, 0)

    def begins(self, place: EpisodePlace) -> int:
        """An open episode begins, perhaps once more after an error; returns how many steps are done."""
        self._begun[place] = self.done
        return self.done

    def ends(self, place: EpisodePlace) -> None:
        """An open episode has ended, and is ready for its step."""
        if place not in self._begun or place in self._ended:
            raise ValueError(f"{place} is not open")
        self._pass_time()
        self._ended.add(place)
        self._count[place.step] += 1

    def learn(self) -> list[EpisodePlace]:
        """Begin to learn from the next step; returns its episodes."""
        if not self.is_ready:
            raise ValueError(f"step {self.done + 1} has {self._count[self.done + 1]} of {self._episodes} episodes")
        self._pass_time()
        self._learning = True
        return [EpisodePlace(self.done + 1, number) for number in range(self._episodes)]

    def learnt(self) -> dict[str, float]:
        """The step is done, and its weights are drawn with; returns what the metrics say of it."""
        if not self._learning:
            raise ValueError("no step is being learnt from")
        self._pass_time()
        step, waiting = self.done + 1, len(self._ended) - self._episodes
        ages = [self.done - self._begun.pop(EpisodePlace(step, number)) for number in range(self._episodes)]
        self._ended = {place for place in self._ended if place.step > step}
        del self._count[step]
        self.done, self._learning = step, False
        passed = self._now - self._since
        idle_learner, idle_places = self._idle_learner, self._idle_places / self._places
        self._since, self._idle_learner, self._idle_places = self._now, 0.0, 0.0
        return {
            "staleness": sum(ages) / len(ages),
            "staleness_max": max(ages),
            "learner_idle": idle_learner / passed if passed else 0.0,
            "players_idle": idle_places / passed if passed else 0.0,
            "open_episodes": self.open,
            "waiting_episodes": waiting,
        }

    def _pass_time(self) -> None:
        """Count the time since the last change, during which nothing has changed."""
        now = self._clock()
        passed, self._now = now - self._now, now
        self._idle_places += passed * (self._places - self.open)
        if not self._learning and not self.is_ready:  # a validation or a checkpoint is no waiting for episodes
            self._idle_learner += passed
