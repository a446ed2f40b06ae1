"""Checks of a replay: continuations earn what the rollouts did, and the luck of turns has mean 0."""

import math
from typing import NamedTuple, Self

import numpy as np

from manyturn.trainers.credit.audit.correlation import ROUNDING
from manyturn.trainers.credit.batch.turn_batch import FloatK, IntK

FAR = 3.0  # standard errors between what rollouts and continuations earn


class ReplayCheck(NamedTuple):
    """Rewards that rollouts earned from a turn on, and those of the continuations from there.

    A right replay earns the same on average: the policy that continues is the one that played.

    Attributes:
        played: mean over rollouts of the mean over their turns.
        continued: the same of the continuations.
        errors: their difference in standard errors over rollouts and continuations; infinite where all differ by the
            same amount.
    """

    played: float
    continued: float
    errors: float

    @classmethod
    def of(cls, played_K: FloatK, continued_KM: np.ndarray, rollout_K: IntK) -> Self:
        """Compare what was earned from each of K turns on with what M continuations from there earned."""
        played, continued = (float(_of_rollouts(side, rollout_K).mean()) for side in (played_K, continued_KM))
        gap_KM = played_K[:, None] - continued_KM
        return cls(played, continued, _in_errors(gap_KM, rollout_K, max(abs(played), abs(continued))))

    def __str__(self) -> str:
        text = f"from a turn on, rollouts earned {self.played:.3g} on average, and continuations {self.continued:.3g}"
        if abs(self.errors) <= FAR:
            return text
        apart = "differ always" if math.isinf(self.errors) else f"are {abs(self.errors):.1f} standard errors apart"
        return (
            f"{text}: they {apart}. Does the replay repeat the turns with the text that the environment got, and "
            "continue with the same policy and chat template?"
        )


class TurnLuck(NamedTuple):
    """Luck of turns: what a turn brought, less what its reply brings on average.

    Attributes:
        turns: those that continuations repeat, and whose effect is without luck.
        spread: standard deviation of their luck, without the sampling error; in units of the return.
        errors: mean of their luck, which is 0 of a right replay, in standard errors over rollouts and continuations;
            infinite where all have the same.
    """

    turns: int
    spread: float
    errors: float

    @classmethod
    def of(cls, luck_KM: np.ndarray, error_K: FloatK, rollout_K: IntK) -> Self:
        """Figures of the luck of K turns by M continuations, with the standard error of each turn's mean."""
        if not len(luck_KM):
            return cls(0, 0.0, 0.0)
        variance = float(np.mean(luck_KM.mean(1) ** 2 - error_K**2))
        return cls(len(luck_KM), math.sqrt(max(0.0, variance)), _in_errors(luck_KM, rollout_K, np.abs(luck_KM).max()))

    def __str__(self) -> str:
        if not self.turns:
            return "the luck of a turn is in its effect: if your environment draws chance, give replies"
        if abs(self.errors) > FAR:
            return (
                f"the luck of {self.turns} turns is not 0 on average: does the replay begin in the state before the "
                "turn, and is the reward of the first reply in its sum?"
            )
        if not self.spread:
            return (
                f"no luck shows in {self.turns} turns: leave replies out if your environment draws no chance; if it "
                "does, draw it again for each continuation, from its number"
            )
        return f"the luck of {self.turns} turns is not in their effects; its standard deviation is {self.spread:.3g}"


def _of_rollouts(figure_K: np.ndarray, rollout_K: IntK) -> np.ndarray:
    """Means over the turns of each rollout (E, further axes as given)."""
    first_E = np.flatnonzero(np.diff(rollout_K, prepend=-1))
    count_E = np.diff(first_E, append=len(rollout_K))
    return np.add.reduceat(figure_K, first_E) / count_E.reshape(-1, *[1] * (figure_K.ndim - 1))


def _in_errors(gap_KM: np.ndarray, rollout_K: IntK, size: float) -> float:
    """The mean of K turns by M continuations in standard errors; 0 where it is rounding for figures of that size.

    Continuations of one number are counted once, since those of all states share their randomness.
    """
    gap_EM = _of_rollouts(gap_KM, rollout_K)
    gap, (E, M) = float(gap_EM.mean()), gap_EM.shape
    if abs(gap) <= ROUNDING * size or E < 2:
        return 0.0
    error = math.sqrt(gap_EM.mean(1).var(ddof=1) / E + gap_EM.mean(0).var(ddof=1) / M)
    return gap / error if error else math.copysign(math.inf, gap)
