"""The moves of a bargain and how they are written: any words, the move standing at their end."""

import re
from typing import NamedTuple

from manyturn.envs.talk.bargain.game import Game, Terms

OFFER, ACCEPT, WALK = "offer", "accept", "walk away"
_LAST = 500  # characters in which a move is looked for
_MOVE = re.compile(r"(?:^|[\n:.!?;,]\s*)(?:(offer) ([^:.!?;\n]{1,80})|(accept|walk away))[.!\s]*$")


class Move(NamedTuple):
    """Move of a side; ``terms`` belong to an offer."""

    kind: str
    terms: Terms | None = None


def read_move(game: Game, side: int, text: str) -> Move | None:
    """The move at the end of a text, or None. A move in the middle of a sentence, as in "I cannot accept", is none."""
    # An offer's own commas must not be taken for the place where it begins, so the last "offer" is looked for first.
    tail = text[-_LAST:].lower()
    match = _MOVE.search(tail[max(0, tail.rfind(OFFER) - 2) :]) or _MOVE.search(tail)
    if match is None:
        return None
    if match[1] is None:
        return Move(match[3])
    terms = game.read(side, match[2].strip())
    return None if terms is None else Move(OFFER, terms)


def move_text(game: Game, side: int, move: Move) -> str:
    """The shortest text of a move."""
    return move.kind if move.terms is None else f"{OFFER} {game.words(side, move.terms)}"
