"""A pupil whose skills are learnt by chance, and what a tutor may conclude from its answers.

Bayesian knowledge tracing, after Corbett and Anderson 1995, "Knowledge tracing": a skill is known or not; one that is
known may slip, one that is not may be guessed; teaching makes it known with a probability. Here that probability also
depends on what was done before: nothing is learnt without the skill that comes before it, and an explanation is taken
in best by a pupil who has just failed.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

SLIP, GUESS = 0.1, 0.2
PRIOR = 0.5  # of a tutor about each skill
EXPLAINED, EXPLAINED_AFTER_FAILURE, HINTED, EXERCISED = 0.3, 0.85, 0.6, 0.1


class Pupil:
    """Skills 0 to n-1, each of which needs the one before it.

    Args:
        mastery: n flags, True for a skill that it has at the beginning.
        pace: from 0 to 1, what every chance to learn is multiplied with; a tutor does not know it.
        rng: all chance.

    Attributes:
        mastery: n flags, as they are at the moment.
        failed: the skill whose exercise it has just failed, or None.
    """

    def __init__(self, mastery: Sequence[bool], pace: float, rng: np.random.Generator):
        self.mastery = list(mastery)
        self.failed: int | None = None
        self._pace, self._rng = pace, rng

    def exercise(self, skill: int) -> bool:
        """True if the exercise is solved; solving teaches a little."""
        right = self._answers(skill)
        self.failed = None if right else skill
        self._learn(skill, EXERCISED)
        return right

    def explain(self, skill: int) -> None:
        """Teach; best after a failure in this very skill."""
        self._learn(skill, EXPLAINED_AFTER_FAILURE if self.failed == skill else EXPLAINED)
        self.failed = None

    def hint(self) -> bool:
        """Teach by a hint at the failed exercise, and let it be tried again; whether it is right now."""
        assert self.failed is not None
        skill = self.failed
        self._learn(skill, HINTED)
        right = self._answers(skill)
        self.failed = None  # one hint to an exercise
        return right

    def _answers(self, skill: int) -> bool:
        return bool(self._rng.random() < (1 - SLIP if self.mastery[skill] else GUESS))

    def _learn(self, skill: int, chance: float) -> None:
        draw = self._rng.random()  # drawn in any case, so that what is known does not shift later chance
        if draw < chance * self._pace and all(self.mastery[:skill]):
            self.mastery[skill] = True

    def save(self) -> Any:
        return [self.mastery, self.failed]

    def load(self, state: Any) -> None:
        self.mastery, self.failed = state


class Tracer:
    """Belief of a tutor about each skill, from answers only.

    Attributes:
        belief: n probabilities that a skill is known.
    """

    def __init__(self, skills: int):
        self.belief = [PRIOR] * skills

    def see(self, skill: int, right: bool) -> None:
        """Bayes' rule for an answer."""
        belief = self.belief[skill]
        if_known, if_not = (1 - SLIP, GUESS) if right else (SLIP, 1 - GUESS)
        self.belief[skill] = belief * if_known / (belief * if_known + (1 - belief) * if_not)

    def taught(self, skill: int, chance: float) -> None:
        """A chance to learn, as far as the skills before it are believed to be known."""
        ready = float(np.prod(self.belief[:skill]))
        self.belief[skill] += (1 - self.belief[skill]) * chance * ready
