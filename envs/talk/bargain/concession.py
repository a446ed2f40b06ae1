"""The counterpart of a bargain: it gives way along a curve, and takes what is as good as its own next offer.

The curves are those of Faratin, Sierra and Jennings 1998, "Negotiation decision functions for autonomous agents": after
a share t of the time the share t ** (1 / beta) of the way from its first offer to its reserve is gone.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.talk.bargain.game import Game, PriceGame, Terms, game_of
from manyturn.envs.talk.bargain.moves import ACCEPT, OFFER, WALK, Move, move_text, read_move
from manyturn.envs.users.protocol import NOTHING, Heard, User

CURVES = {"boulware": 0.3, "linear": 1.0, "conceder": 3.0}
DISCOUNT = 0.9  # what a turn leaves of a deal's worth

_OFFERS = ("I could do this", "What about this", "My proposal", "Let me meet you halfway", "How does this sound")
_LEAVES = ("That is an insult", "We are too far apart")


@dataclass(frozen=True)
class Counterpart:
    """Goal of a task's counterpart.

    Args:
        game: the rules.
        side: which side it is.
        beta: of its curve.
        reserve: the worth below which it will not go at the last turn.
        rounds: turns of the agent.
        proud: whether it leaves after two offers worth less than nothing to it.
    """

    game: Game
    side: int
    beta: float
    reserve: float
    rounds: int
    proud: bool

    @property
    def first(self) -> float:
        """The worth of its first offer to itself."""
        if isinstance(self.game, PriceGame):
            low = self.game.least * 3 // 4
            return self.game.worth(self.side, self.game.listed if self.side == 1 else low)
        return 1.0

    def asks(self, turn: int) -> float:
        """Smallest worth of terms that it accepts at a turn of the agent, the first being 0."""
        gone = min(1.0, turn / max(1, self.rounds - 1)) ** (1 / self.beta)
        return self.first + (self.reserve - self.first) * gone

    def takes(self, terms: Terms, turn: int) -> bool:
        return self.game.worth(self.side, terms) >= self.asks(turn) - 1e-9

    def offer(self, turn: int, near: Terms | None) -> Terms:
        """The terms that are worth least to it of those that it would take; nearest to what was offered last."""
        if isinstance(self.game, PriceGame):
            span = self.game.most - self.game.least
            if self.side == 1:
                return int(-(-(self.game.least + self.asks(turn) * span - 1e-6) // 1))
            return int((self.game.most - self.asks(turn) * span + 1e-6) // 1)
        fit = self._fit(turn)
        return min(fit, key=lambda terms: (self.game.worth(self.side, terms), _distance(terms, near), terms))

    def best_for_other(self, turn: int) -> tuple[float, Terms]:
        """Largest worth for the agent at a turn, and the terms that have it."""
        if isinstance(self.game, PriceGame):
            terms = self.offer(turn, None)
            return self.game.worth(1 - self.side, terms), terms
        return max((self.game.worth(1 - self.side, terms), terms) for terms in self._fit(turn))

    def waiting(self) -> Terms:
        """Terms that it does not take before the end, if there are any, and that do not insult it."""
        if isinstance(self.game, PriceGame):
            return self.offer(self.rounds, None)
        return min(self.game.offers(), key=lambda terms: (self.game.worth(self.side, terms), terms))

    def _fit(self, turn: int) -> list[Terms]:
        least = self.asks(turn) - 1e-9
        return [terms for terms in self.game.offers() if self.game.worth(self.side, terms) >= least]


def _distance(one: Terms, two: Terms | None) -> int:
    if not isinstance(one, tuple) or not isinstance(two, tuple):
        return 0
    return sum(abs(a - b) for a, b in zip(one, two, strict=True))


def counterpart_of(task: Task, rounds: int) -> Counterpart:
    """The counterpart that a task describes."""
    params = task.params
    beta, side = CURVES[params["curve"]], 1 - params["side"]
    return Counterpart(game_of(params), side, beta, params["reserve"], rounds, params["proud"])


class ConcessionUser(User):
    """Plays a counterpart. The cue ``round`` says which turn of the agent it is.

    Args:
        counterpart_of: the counterpart of a task.
    """

    name = "rule"

    def __init__(self, counterpart_of: Callable[[Task], Counterpart]):
        self._counterpart_of = counterpart_of

    def begin(self, task: Task, rng: np.random.Generator) -> str:
        self._who, self._rng = self._counterpart_of(task), rng
        self._insults = 0
        return self._says(Move(OFFER, self._who.offer(0, None)))

    def hear(self, text: str, cue: Mapping[str, Any] = NOTHING) -> Heard:
        who = self._who
        move = read_move(who.game, 1 - who.side, text)
        if move is None or move.terms is None:
            return Heard("I am waiting for your offer.")
        if who.takes(move.terms, cue["round"]):
            return Heard(f"Agreed: {ACCEPT}.")
        self._insults += who.game.worth(who.side, move.terms) < 0
        if who.proud and self._insults > 1:
            return Heard(f"{self._pick(_LEAVES)}: {WALK}.", done=True)
        return Heard(self._says(Move(OFFER, who.offer(cue["round"], move.terms))))

    def save(self) -> Any:
        return self._insults

    def load(self, state: Any) -> None:
        self._insults = state

    def _says(self, move: Move) -> str:
        return f"{self._pick(_OFFERS)}: {move_text(self._who.game, self._who.side, move)}."

    def _pick(self, phrases: tuple[str, ...]) -> str:
        return phrases[int(self._rng.integers(len(phrases)))]
