"""Worlds of ``credit_worlds.py`` that also pay for single turns, as real step rewards do: some help, some mislead.

Whoever looks at the outcome alone meets the very same tasks. ``Tempting`` pays for turns from the start.
"""

from typing import ClassVar

from credit_worlds import COLOURS, Long, Manners, Repeated

from manyturn.envs.contract.turn import Turn


class PaidRepeated(Repeated):
    """A ladder whose rungs pay 0.1 each time that they are climbed.

    Climbing is what is wanted, but to slide and climb again pays as well as to arrive.
    """

    part_names = ("climb",)

    def respond(self, action: str) -> Turn:
        before, turn = self.done, super().respond(action)
        return _paid(turn, "climb", 0.1) if self.done > before else turn


class PaidLong(Long):
    """Signs of which each wrong answer costs 0.05: a reward that agrees with the outcome, and tells slips apart."""

    part_names = ("slip",)

    def respond(self, action: str) -> Turn:
        before, turn = self.done, super().respond(action)
        return _paid(turn, "slip", -0.05) if turn.understood and self.done == before else turn


class PaidManners(Manners):
    """Guests who smile at pale colours, which pays 0.3; two of the three pale ones offend."""

    part_names = ("smile",)
    pale: ClassVar[tuple[str, ...]] = ("white", *COLOURS[6:])

    def respond(self, action: str) -> Turn:
        turn = super().respond(action)
        return _paid(turn, "smile", 0.3) if turn.understood and action.split()[-1] in self.pale else turn


def _paid(turn: Turn, part: str, reward: float) -> Turn:
    return turn._replace(parts={**turn.parts, part: reward})
