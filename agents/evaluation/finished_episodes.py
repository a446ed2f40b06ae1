"""The finished episodes of an evaluation: those that its journal held, and those that are played now."""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, NamedTuple, Self

from manyturn.agents.evaluation.usage_meter import Meter
from manyturn.agents.play.episode import Ending, Episode
from manyturn.agents.records.episode_log import Journal
from manyturn.agents.records.episode_rows import Row, episode_rows, turn_rows
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.agents.tokens.usage import Spent
from manyturn.envs.contract.tasks.task import Task

Place = tuple[str, int]
"""The content of a task, and the member of its group."""


class Progress(NamedTuple):
    """Progress of an evaluation.

    Attributes:
        total: episodes that were asked for.
        done: those that are finished, errors included.
        played: how many ended now, and were not found in the journal.
        errors: how many of the finished ended in an error.
        won: how many reached the goal.
        judged: of how many it is known whether they did.
        spent: what all replies took, those of earlier calls and of lost episodes included.
    """

    total: int
    done: int
    played: int
    errors: int
    won: int
    judged: int
    spent: Spent


@dataclass(frozen=True)
class Finished:
    """One finished episode as rows; and of the evaluation up to then, its seconds and what all replies took."""

    episode: Row
    turns: list[Row]
    elapsed: float
    spent: Sequence[float | None]

    @property
    def is_error(self) -> bool:
        return Ending(self.episode["ending"]).is_error


class KeptEpisodes:
    """Finished episodes by task and member. As a context manager it notes at the end what lost episodes took.

    Args:
        journal: what was finished before, and where each that ends now is written; None keeps nothing.

    Attributes:
        finished: of several attempts at an episode the last.
        played: how many ended now.
        meter: what all replies took.
    """

    def __init__(self, journal: Journal | None):
        self._journal = journal
        self.finished: dict[Place, Finished] = {}
        self.played, self.meter = 0, Meter()
        self._tally = Counter[str]()
        for entry in journal.entries if journal is not None else ():
            self._read(entry)
        self._noted = self.meter.spent
        self._began = time.monotonic() - max((entry.elapsed for entry in self.finished.values()), default=0.0)

    def _read(self, entry: dict[str, Any]) -> None:
        if entry.keys() == Finished.__dataclass_fields__.keys():
            self._put(Finished(**entry))
        if "spent" in entry:
            self.meter.spent = Spent(*entry["spent"])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._journal is not None and self.meter.spent != self._noted:
            self._journal.append({"spent": self.meter.spent})

    def is_missing(self, task: Task, key: EpisodeKey) -> bool:
        """True if an episode has yet to be played: there is none, or it ended in an error."""
        earlier = self.finished.get((task.content, key.member))
        return earlier is None or earlier.is_error

    def take(self, episode: Episode) -> None:
        """Keep an episode that has ended."""
        place = (episode.task.content, episode.key.member)
        [row], turns = episode_rows([episode]), turn_rows([episode])
        if place in self.finished:
            row["attempts"] += self.finished[place].episode["attempts"]
        entry = Finished(row, turns, time.monotonic() - self._began, self.meter.spent)
        self._put(entry)
        self.played += 1
        if self._journal is not None:
            self._journal.append(vars(entry))
            self._noted = self.meter.spent

    def progress(self, total: int) -> Progress:
        """Progress of the evaluation of ``total`` episodes."""
        tally = self._tally
        done = (len(self.finished), self.played, tally["errors"], tally["won"], tally["judged"])
        return Progress(total, *done, self.meter.spent)

    def _put(self, entry: Finished) -> None:
        place = (entry.episode["content"], entry.episode["member"])
        if place in self.finished:
            self._tally.subtract(_tally(self.finished[place]))
        self.finished[place] = entry
        self._tally.update(_tally(entry))


def _tally(entry: Finished) -> dict[str, int]:
    success = entry.episode["success"]
    return {"errors": int(entry.is_error), "won": int(bool(success)), "judged": int(success is not None)}
