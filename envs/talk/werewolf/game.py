"""Rules of Werewolf with five seats: who may act, what each seat may know, and who has won.

At night the seer looks at a seat; from the second night on, the werewolf kills one. By day all living seats speak in
turn and then vote. The villagers win when the werewolf is voted out, the werewolf wins when only one other seat lives.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

SEATS = 5
WEREWOLF, SEER, VILLAGER = "werewolf", "seer", "villager"
LOOK, KILL, SPEAK, VOTE, OVER = "look", "kill", "speak", "vote", "over"  # phases
ACCUSE, EXPOSE, CLEAR, SILENCE = "accuse", "expose", "clear", "silence"  # statements of a day

_FORMS = {
    LOOK: "look at {}",
    KILL: "kill {}",
    VOTE: "vote for {}",
    ACCUSE: "accuse {}",
    EXPOSE: "I am the seer and {} is the werewolf",
    CLEAR: "I am the seer and {} is innocent",
    SILENCE: "say nothing",
}
_STATEMENTS = (ACCUSE, EXPOSE, CLEAR)
_LAST = 300  # characters in which a move is looked for
_SPOKEN = 400  # characters of a statement that the others read
_ALL = -1  # the audience of an event that every seat learns of


class Move(NamedTuple):
    """Move of a seat: a phase's act or a statement, and the seat that it is about; ``SILENCE`` is about none."""

    kind: str
    target: int | None = None


class Statement(NamedTuple):
    """Words of a day, reduced to what they claim."""

    day: int
    speaker: int
    kind: str
    target: int | None


@dataclass
class Game:
    """A game of five seats, which speak in the order of their numbers.

    Args:
        names: of the seats.
        werewolf, seer: their seats.

    Attributes:
        actor: seat that acts next.
        living: seats, ascending.
        looks: seats that the seer has looked at -> True for the werewolf.
        statements: of all days.
        votes: of this day, seat -> seat.
        winner: ``werewolf``, ``villager`` for all others, or None while the game goes on.
    """

    names: Sequence[str]
    werewolf: int
    seer: int
    day: int = 0
    phase: str = LOOK
    actor: int = -1
    living: list[int] = field(default_factory=lambda: list(range(SEATS)))
    looks: dict[int, bool] = field(default_factory=dict)
    statements: list[Statement] = field(default_factory=list)
    votes: dict[int, int] = field(default_factory=dict)
    winner: str | None = None
    _events: list[tuple[int, str]] = field(default_factory=list)  # audience, text
    _read: list[int] = field(default_factory=lambda: [0] * SEATS)  # events that each seat has read

    def __post_init__(self) -> None:
        if self.actor < 0:
            self.actor = self.seer

    def kind_of(self, seat: int) -> str:
        """``werewolf``, ``seer`` or ``villager``."""
        return {self.werewolf: WEREWOLF, self.seer: SEER}.get(seat, VILLAGER)

    def moves(self) -> list[Move]:
        """All moves of the seat that acts."""
        others = [seat for seat in self.living if seat != self.actor]
        if self.phase == SPEAK:
            return [Move(kind, seat) for kind in _STATEMENTS for seat in others] + [Move(SILENCE)]
        return [] if self.phase == OVER else [Move(self.phase, seat) for seat in others]

    def text(self, move: Move) -> str:
        """The shortest text of a move."""
        return _FORMS[move.kind].format("" if move.target is None else self.names[move.target])

    def read_move(self, text: str) -> Move | None:
        """The move at the end of a text, after any other words; None if there is none that the seat may make."""
        tail = text[-_LAST:].lower().rstrip(" \n\t.!")
        for move in self.moves():
            if re.search(rf"(?:^|[\n.,:;!?]\s*){re.escape(self.text(move).lower())}$", tail):
                return move
        return None

    def play(self, move: Move, words: str) -> None:
        """Make a move of ``moves``; ``words`` are what the seat said, which others read by day."""
        if self.phase == LOOK:
            assert move.target is not None
            self.looks[move.target] = move.target == self.werewolf
            verdict = "the werewolf" if self.looks[move.target] else "innocent"
            self._tell(f"You looked at {self.names[move.target]}: {verdict}.", self.seer)
            self._begin(KILL if self.day else SPEAK)
        elif self.phase == KILL:
            assert move.target is not None
            self._remove(move.target, "was killed in the night")
            if self.winner is None:
                self._begin(SPEAK)
        elif self.phase == SPEAK:
            self.statements.append(Statement(self.day, self.actor, *move))
            self._tell(f"{self.names[self.actor]}: {words.strip()[-_SPOKEN:]}")
            self._read[self.actor] = len(self._events)  # a seat knows what it said itself
            self._next_or(VOTE)
        else:
            assert move.target is not None
            self.votes[self.actor] = move.target
            self._next_or(LOOK)

    def _next_or(self, phase: str) -> None:
        """Pass the word to the next living seat, or end this phase."""
        later = [seat for seat in self.living if seat > self.actor]
        if later:
            self.actor = later[0]
        elif phase == VOTE:
            self._begin(VOTE)
        else:
            self._count_votes()
            if self.winner is None:
                self._begin(LOOK if self.seer in self.living else KILL)

    def _begin(self, phase: str) -> None:
        self.phase = phase
        if phase == SPEAK:
            self.day += 1
        self.actor = {LOOK: self.seer, KILL: self.werewolf}.get(phase, self.living[0])

    def _count_votes(self) -> None:
        cast = ", ".join(f"{self.names[voter]} for {self.names[seat]}" for voter, seat in self.votes.items())
        self._tell(f"The votes: {cast}.")
        (first, most), *rest = Counter(self.votes.values()).most_common()
        self.votes = {}
        if rest and rest[0][1] == most:
            self._tell("The vote is tied, and all stay.")
        else:
            self._remove(first, "is voted out")

    def _remove(self, seat: int, how: str) -> None:
        self.living.remove(seat)
        self._tell(f"{self.names[seat]} {how}, and was {'a' if self.kind_of(seat) == VILLAGER else 'the'} "
                   f"{self.kind_of(seat)}.")  # fmt: skip
        if seat == self.werewolf:
            self.winner = VILLAGER
        elif len(self.living) == 2:
            self.winner = WEREWOLF
        if self.winner is not None:
            self.phase = OVER

    def _tell(self, text: str, audience: int = _ALL) -> None:
        self._events.append((audience, text))

    def events_of(self, seat: int) -> list[str]:
        """All events that a seat has learnt of, oldest first."""
        return [text for audience, text in self._events if audience in (_ALL, seat)]

    def news(self) -> list[str]:
        """Events that the seat which acts has learnt of since it last acted; they count as read from now on."""
        unread = self._events[self._read[self.actor] :]
        self._read[self.actor] = len(self._events)
        return [text for audience, text in unread if audience in (_ALL, self.actor)]

    def plain(self) -> dict[str, Any]:
        """The state as plain values; ``from_plain`` is the inverse."""
        return asdict(self)

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> "Game":
        """The game of ``plain``, which may have been through JSON."""
        game = cls(**plain)
        game.looks = {int(seat): bool(wolf) for seat, wolf in game.looks.items()}
        game.votes = {int(seat): target for seat, target in game.votes.items()}
        game.statements = [Statement(*each) for each in game.statements]
        game._events = [(audience, text) for audience, text in game._events]
        return game
