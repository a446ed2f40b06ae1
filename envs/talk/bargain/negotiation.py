"""Bargaining with a simulated counterpart."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from manyturn.envs.contract.env.turn import Turn
from manyturn.envs.contract.random_keys import digest
from manyturn.envs.contract.stable_random import Draws
from manyturn.envs.contract.tasks.task import GeneratedTasks, Task, split_of
from manyturn.envs.talk.bargain.concession import CURVES, DISCOUNT, ConcessionUser, Counterpart, counterpart_of
from manyturn.envs.talk.bargain.game import PRICE, SPLIT, Terms, draw_price, draw_split
from manyturn.envs.talk.bargain.moves import ACCEPT, OFFER, WALK, Move, move_text, read_move
from manyturn.envs.talk.talk_env import TalkEnv
from manyturn.envs.users.user_env import Maker, NoOptions

GAMES = (PRICE, SPLIT)
SUCCESS = 0.9  # share of the best response that counts as a good deal
_TASKS = {"train": 100_000, "validation": 10_000, "test": 10_000}


@dataclass(frozen=True)
class BargainLevel:
    """Level: the curves, the number of turns, and whether the counterpart leaves when insulted."""

    curves: tuple[str, ...]
    turns: int
    proud: bool


LEVELS = {
    "easy": BargainLevel(("linear",), 6, proud=False),
    "medium": BargainLevel(tuple(CURVES), 8, proud=False),
    "hard": BargainLevel(tuple(CURVES), 10, proud=True),
}


class Negotiation(TalkEnv):
    """Get as much as the counterpart will give, before waiting costs more than it brings.

    Task:
        A bargain over a price, or over who gets how many of three kinds of things. The counterpart has a private
        reserve and gives way along a private curve.
    Observation:
        What a deal is worth to the agent, then the counterpart's offers. ``progress`` is the share of the best response
        that the best offer so far would pay. At the end ``info["pareto_gap"]`` is what more there was without the
        counterpart having less.
    Actions:
        ``offer TERMS``, ``accept`` or ``walk away``, at the end of what is said.
    Reward:
        A deal pays its worth divided by that of the best response to this counterpart, at least -1. Every turn takes 10
        % off a deal's worth. No deal pays 0. ``turns`` adds the part ``concession``, the change of ``progress``.
    End:
        A deal, a side that walks away, or on hard a counterpart that was insulted twice. Success is a deal that pays
        0.9.
    Splits:
        train, validation and test share no bargain.
    Expert:
        Best response to the counterpart, whose curve it knows: waits until the best turn, and then asks for the most.
    Floors:
        On 400 test tasks each the expert pays 1 and silence 0. Over a price, random admissible moves pay -0.5 to -0.6
        and accepting the first offer -0.9; neither succeeds in more than 0.3 %. Over a split they pay 0.27 to 0.30 and
        0.19 to 0.22, and succeed in 6 to 9 % and in 10 to 15 %.

    Args:
        split: train, validation or test.
        game: ``price``, or ``split``: who gets how many of three kinds of things.
        difficulty: easy (linear concessions, 6 turns), medium (boulware, linear or conceder, 8) or hard (10, and the
            counterpart leaves after two offers that are worth less than nothing to it).
        user, rewards: see ``TalkEnv``.
        max_turns: overrides the level's limit.
    """

    turn_part = "concession"
    harmless = (*TalkEnv.harmless, "game")
    levels = LEVELS
    level: BargainLevel

    def __init__(
        self,
        split: str = "train",
        game: str = PRICE,
        difficulty: str = "easy",
        user: str | Mapping[str, Any] | None = None,
        rewards: str = "outcome",
        max_turns: int | None = None,
    ):
        if game not in GAMES:
            raise ValueError(f"no game {game!r}: choose {' or '.join(GAMES)}")
        self.game, self.instructions = game, INSTRUCTIONS[game]
        super().__init__(split, difficulty, user, rewards, max_turns)

    def tasks(self, split: str) -> Sequence[Task]:
        prefix = f"{split}/{self.game}/{self.difficulty}/"

        def make(number: int) -> Task:
            draws = Draws("negotiation", prefix, number)
            while True:
                params = draw_bargain(draws, self.game, self.level)
                if split_of(digest(params)) == split and is_worth_it(params, self.level.turns):
                    return Task(f"{prefix}{number}", split, params, self.difficulty, (params["curve"],))

        return GeneratedTasks(make, _TASKS[split], prefix)

    def makers(self) -> Mapping[str, Maker]:
        return {"rule": Maker(NoOptions, lambda _: ConcessionUser(self._counterpart_of))}

    def brief(self, task: Task) -> str:
        who = self._counterpart_of(task)
        first = who.game.words(who.side, who.offer(0, None))
        return (
            f"You bargain with the assistant. {who.game.brief(who.side)} {INSTRUCTIONS[self.game]} You speak first. "
            f"End each message with your move. Your first move is: offer {first}. "
            f"Never accept a deal worth less to you than: {who.game.words(who.side, who.offer(who.rounds, None))}."
        )

    def _counterpart_of(self, task: Task) -> Counterpart:
        return counterpart_of(task, self.level.turns)

    def begin(self, task: Task, rng: np.random.Generator) -> str:
        self._who, self._side = self._counterpart_of(task), int(task.params["side"])
        self._game = self._who.game
        self._best_turn, self._best_pay = self._best_response()
        self._standing: Terms | None = None
        self._top = 0.0  # share of the best response that the best offer so far would pay
        self._gap: float | None = None
        opening = self.meet(task)
        self._hear_offer(opening)
        return f"{self._game.brief(self._side)}\n{opening}"

    def reply(self, action: str) -> Turn:
        move = read_move(self._game, self._side, action)
        if move is None or (move.kind == ACCEPT and self._standing is None):
            refused = self.unreadable if move is None else self.invalid
            return refused(f"End your message with one of these moves: offer {self._form()}, accept, walk away.")
        if move.kind == WALK:
            return self.fail("You walk away.")
        if move.kind == ACCEPT:
            assert self._standing is not None
            return self._deal(self._standing, "Agreed.")
        heard = self.user.hear(action, {"round": self.turn})
        theirs = read_move(self._game, 1 - self._side, heard.utterance)
        if theirs is not None and theirs.kind == ACCEPT:
            assert move.terms is not None
            return self._deal(move.terms, heard.utterance)
        if heard.done or (theirs is not None and theirs.kind == WALK):
            return self.fail(heard.utterance or "The counterpart has left.")
        self._hear_offer(heard.utterance)
        return self.go_on(heard.utterance)

    def _deal(self, terms: Terms, text: str) -> Turn:
        self._gap = self._game.other_best(self._side, terms)
        self._standing = terms
        pay = max(-1.0, self._pay(terms, self.turn))
        self._top = max(self._top, min(1.0, pay))
        return (self.succeed if pay >= SUCCESS else self.fail)(text, outcome=pay)

    def _hear_offer(self, utterance: str) -> None:
        move = read_move(self._game, 1 - self._side, utterance)
        if move is not None and move.terms is not None:
            self._standing = move.terms
            self._top = max(self._top, min(1.0, self._pay(move.terms, self.turn + 1)))

    def _pay(self, terms: Terms, turn: int) -> float:
        return self._game.worth(self._side, terms) * DISCOUNT**turn / self._best_pay

    def _best_response(self) -> tuple[int, float]:
        """The turn at which the most can be had, and what that is worth then."""
        pays = [self._who.best_for_other(turn)[0] * DISCOUNT**turn for turn in range(self._who.rounds)]
        return pays.index(max(pays)), max(pays)

    def _form(self) -> str:
        return "PRICE" if self.game == PRICE else "WHAT YOU KEEP"

    def admissible(self) -> list[str]:
        moves = [Move(OFFER, terms) for terms in self._game.offers()] + [Move(WALK)]
        moves += [Move(ACCEPT)] if self._standing is not None else []
        return [move_text(self._game, self._side, move) for move in moves]

    def anchor(self) -> Hashable:
        return (self.task.id, self.turn, self._standing, self.user.save() if self._who.proud else None)

    def progress(self) -> float:
        return self._top

    def notes(self) -> Mapping[str, Any]:
        return super().notes() if self._gap is None else {**super().notes(), "pareto_gap": self._gap}

    def expert(self) -> str:
        """Best response to the counterpart that it knows: says what leads nowhere until the best turn has come."""
        terms = self._who.waiting() if self.turn < self._best_turn else self._who.best_for_other(self.turn)[1]
        return move_text(self._game, self._side, Move(OFFER, terms))

    def state(self) -> Any:
        return [self._standing, self._top, self._gap]

    def set_state(self, state: Any) -> None:
        standing, self._top, self._gap = state
        self._standing = tuple(standing) if isinstance(standing, list) else standing


INSTRUCTIONS = {
    PRICE: (
        "Agree on a price. A deal loses 10 percent of its value every turn. Walking away is worth 0. Moves: "
        "offer PRICE, accept, walk away."
    ),
    SPLIT: (
        "Agree on who gets what. A deal loses 10 percent of its value every turn. Walking away is worth 0. "
        "Moves: offer WHAT YOU KEEP, such as offer 2 books, 0 hats, 1 balls; accept; walk away."
    ),
}


def draw_bargain(draws: Draws, game: str, level: BargainLevel) -> dict[str, Any]:
    """A game, the agent's side, and what the counterpart is like."""
    params = draw_price(draws) if game == PRICE else draw_split(draws)
    reserve = 0.0 if game == PRICE else draws.between(3, 5) / 10
    curve = draws.pick(level.curves)
    return {**params, "side": draws.below(2), "curve": curve, "reserve": reserve, "proud": level.proud}


def is_worth_it(params: Mapping[str, Any], rounds: int) -> bool:
    """True if the counterpart will give anything that is worth a bargain."""
    return counterpart_of(Task("", "", params), rounds).best_for_other(rounds)[0] > 0.2
