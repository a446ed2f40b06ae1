"""Bargaining in which both sides are policies: the environment says whose turn it is and who earned what."""

import json
from collections.abc import Hashable, Mapping, Sequence

import numpy as np

from manyturn.envs.contract.env.text_env import TextEnv
from manyturn.envs.contract.env.turn import Turn
from manyturn.envs.contract.random_keys import digest
from manyturn.envs.contract.stable_random import Draws
from manyturn.envs.contract.tasks.task import GeneratedTasks, Task, split_of
from manyturn.envs.talk.bargain.concession import DISCOUNT
from manyturn.envs.talk.bargain.game import PRICE, PriceGame, Terms, draw_price, draw_split, game_of
from manyturn.envs.talk.bargain.moves import ACCEPT, OFFER, WALK, Move, move_text, read_move
from manyturn.envs.talk.bargain.negotiation import GAMES, INSTRUCTIONS

FAIR = 0.9
_TASKS = {"train": 100_000, "validation": 10_000, "test": 10_000}
_LONGEST = 2_000  # characters of what one side says that the other reads


class SelfPlay(TextEnv):
    """Two policies bargain with each other.

    Task:
        A bargain over a price, or over who gets how many of three kinds of things, and who opens it.
    Observation:
        What the side that acts next may know: its own values and what the other said. ``info["role"]`` names that side.
    Actions:
        ``offer TERMS``, ``accept`` or ``walk away``, at the end of what is said.
    Reward:
        A deal pays each side its worth to that side, less 10 % for each turn of that side. The part ``buyer.outcome``
        is the buyer's, and so on: the name before the dot owns it. The reward of a turn is the sum of both, which suits
        a policy that plays both sides for the common good.
    End:
        A deal, or a side that walks away. Success is a fair deal: its product of worths is at least 0.9 of the largest
        possible one (Nash 1950).
    Splits:
        train, validation and test share no bargain.
    Expert:
        Plays both sides: proposes the fairest deal, and accepts a fair one.
    Floors:
        On 400 test tasks each the expert succeeds in all, random admissible moves in 4 %, silence in none.

    Args:
        split: split that ``reset`` draws from.
        game: ``price``, or ``split``.
        max_turns: of both sides together; default 12.
    """

    harmless = (*TextEnv.harmless, "game")
    max_turns = 12

    def __init__(self, split: str = "train", game: str = PRICE, max_turns: int | None = None):
        if game not in GAMES:
            raise ValueError(f"no game {game!r}: choose {' or '.join(GAMES)}")
        self.game = game
        self.instructions = INSTRUCTIONS[game]
        super().__init__(split, max_turns)
        self.roles = PriceGame.sides if game == PRICE else ("first", "second")
        self.part_names = tuple(f"{role}.outcome" for role in self.roles)  # of this game

    def tasks(self, split: str) -> Sequence[Task]:
        prefix = f"{split}/{self.game}/"

        def make(number: int) -> Task:
            draws = Draws("self-play", prefix, number)
            while True:
                params = draw_price(draws) if self.game == PRICE else draw_split(draws)
                params["opens"] = draws.below(2)
                if split_of(digest(params)) == split:
                    return Task(f"{prefix}{number}", split, params)

        return GeneratedTasks(make, _TASKS[split], prefix)

    def begin(self, task: Task, rng: np.random.Generator) -> str:
        self._game = game_of(task.params)
        self._side = int(task.params["opens"])
        self._moves = 0
        self._standing: Terms | None = None
        self._paid: dict[str, float] = {}
        return self._seen("You speak first.")

    def respond(self, action: str) -> Turn:
        move = read_move(self._game, self._side, action)
        if move is None or (move.kind == ACCEPT and self._standing is None):
            refused = self.unreadable if move is None else self.invalid
            return refused(self._seen("End your message with one of the moves."))
        if move.kind == WALK:
            return Turn("No deal.", {}, terminated=True, success=False)
        if move.kind == ACCEPT:
            return self._deal()
        self._standing, self._side, self._moves = move.terms, 1 - self._side, self._moves + 1
        return self.go_on(self._seen(f"The other side: {action[-_LONGEST:]}"))

    def _deal(self) -> Turn:
        assert self._standing is not None
        worths = [self._game.worth(side, self._standing) for side in range(2)]
        discount = DISCOUNT ** (self._moves // 2)
        self._paid = {name: worth * discount for name, worth in zip(self.part_names or (), worths, strict=True)}
        return Turn("It is a deal.", self._paid, terminated=True, success=self._is_fair(self._standing))

    def _seen(self, text: str) -> str:
        return f"You are the {self.roles[self._side]}. {self._game.brief(self._side)}\n{text}"

    def _product(self, terms: Terms) -> float:
        worths = [self._game.worth(side, terms) for side in range(2)]
        return worths[0] * worths[1] if min(worths) > 0 else 0.0

    def _is_fair(self, terms: Terms) -> bool:
        return self._product(terms) >= FAIR * self._product(self._fairest())

    def _fairest(self) -> Terms:
        if isinstance(self._game, PriceGame):
            return (self._game.least + self._game.most) // 2
        return max(self._game.offers(), key=self._product)

    def admissible(self) -> list[str]:
        moves = [Move(OFFER, terms) for terms in self._game.offers()] + [Move(WALK)]
        moves += [Move(ACCEPT)] if self._standing is not None else []
        return [move_text(self._game, self._side, move) for move in moves]

    def anchor(self) -> Hashable:
        return (self.task.id, self._side, self._moves, self._standing)

    def expert(self) -> str:
        """Proposes the fairest deal, and accepts a fair one."""
        if self._standing is not None and self._is_fair(self._standing):
            return ACCEPT
        return move_text(self._game, self._side, Move(OFFER, self._fairest()))

    def measures(self) -> Mapping[str, float]:
        """Earnings of each side."""
        return {name: self._paid.get(name, 0.0) for name in self.part_names or ()}

    def save(self) -> bytes:
        return json.dumps([self._side, self._moves, self._standing]).encode()

    def load(self, data: bytes) -> None:
        self._side, self._moves, standing = json.loads(data)
        self._standing = tuple(standing) if isinstance(standing, list) else standing

    def role(self) -> str:
        return self.roles[self._side]
