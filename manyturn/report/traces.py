"""Episodes and turns in columns, read from a pair of files; a trace is cut out when it is opened."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from manyturn.agents.records.episode_rows import EPISODES, TURNS
from manyturn.agents.records.tables import RecordsError, Table, open_table
from manyturn.report.report_head import ReportError, number

Trace = dict[str, Any]
_NAME = ("task", "stage", "member")
_TOKEN_DIGITS = 4


class File(NamedTuple):
    """A file as it was at a time: what was read from it holds until one of these changes."""

    path: Path
    changed: int
    size: int

    @classmethod
    def at(cls, path: Path) -> Self:
        try:
            stat = path.stat()
        except OSError as error:
            raise ReportError(f"{path} cannot be read ({error.strerror}): restore it, or make it again") from None
        return cls(path, stat.st_mtime_ns, stat.st_size)


@dataclass(frozen=True)
class Played:
    """E episodes.

    Attributes:
        episodes: E rows of ``records.EPISODES``.
        starts_E: E + 1 places: the turns of episode i are the rows starts[i] to starts[i + 1].
        credit: E means over an episode's turns of their credit; None where there is none.
        turns_file: where the turns are.
    """

    episodes: Table
    starts_E: NDArray[np.int64]
    credit: Sequence[float | None]
    turns_file: File

    def __len__(self) -> int:
        return len(self.episodes)

    @cached_property
    def groups(self) -> list[list[int]]:
        """Rows of the episodes of one stage and task, in the order in which groups begin."""
        rows_of: dict[tuple[str, str], list[int]] = {}
        for row, name in enumerate(zip(self.episodes.column("stage"), self.episodes.column("task"), strict=True)):
            rows_of.setdefault(name, []).append(row)
        return list(rows_of.values())

    def trace(self, row: int) -> Trace:
        """The turns of an episode; raises ReportError if their file has changed since the episodes were read."""
        if File.at(self.turns_file.path) != self.turns_file:
            raise ReportError(f"{self.turns_file.path} has changed: read the report's list again")
        first, end = self.starts_E[row : row + 2].tolist()
        [last] = self.episodes.take([row]).column("last")
        return _trace(_turns(self.turns_file).cut(first, end), last)


@lru_cache(maxsize=65_536)
def count(file: File) -> int:
    """Number of rows in a file of episodes."""
    return open_table(file.path, EPISODES).n_rows


@lru_cache(maxsize=4_096)
def played(episodes: File, turns: File) -> Played:
    """The episodes of a pair of files; nothing but names and credit is read of their turns.

    Raises:
        RecordsError: a file is damaged, or the two do not belong together.
    """
    table, of_turns = open_table(episodes.path, EPISODES).read(), open_table(turns.path, TURNS)
    extra = [name for name in of_turns.names if name not in TURNS.names]
    credit = "advantage" if "advantage" in extra else extra[0] if extra else None
    names = of_turns.read([*_NAME, *([credit] if credit else [])])
    counts_E = np.array(table.column("turns"), np.int64) + np.array(table.column("inner_turns"), np.int64)
    starts_E = np.concatenate([[0], np.cumsum(counts_E)])
    together = counts_E.min(initial=0) >= 0 and starts_E[-1] == len(names)
    if not together or any(names.column(key) != _repeated(table.column(key), counts_E) for key in _NAME):
        raise RecordsError(f"{turns.path} does not hold the turns of {episodes.path}: restore both from one source")
    if credit is None:
        return Played(table, starts_E, [None] * len(table), turns)
    values_K = np.array([math.nan if value is None else value for value in names.column(credit)], np.float64)
    return Played(table, starts_E, _means(values_K, counts_E), turns)


def _repeated(values: Sequence[Any], counts_E: NDArray[np.int64]) -> list[Any]:
    """The value of its episode for each turn."""
    return [value for value, count in zip(values, counts_E.tolist(), strict=True) for _ in range(count)]


def _means(values_K: NDArray[np.float64], counts_E: NDArray[np.int64]) -> list[float | None]:
    """Mean of each episode; None if it has no turn, or one without a value."""
    owner_K = np.repeat(np.arange(len(counts_E)), counts_E)
    with np.errstate(invalid="ignore", divide="ignore"):
        means_E = np.bincount(owner_K, weights=values_K, minlength=len(counts_E)) / counts_E
    return [number(mean) for mean in means_E.tolist()]


# Few, for turns are large; a reader goes through the episodes of one step after another.
@lru_cache(maxsize=4)
def _turns(file: File) -> Table:
    return open_table(file.path, TURNS).read()


def _trace(turns: Table, last: str) -> Trace:
    """K turns as columns."""
    column = turns.columns()
    seconds = zip(column["seconds_policy"], column["seconds_env"], strict=True)
    return {
        "observations": column["observation"],
        "replies": column["reply"],
        "reasoning": column["reasoning"],
        "actions": column["action"],
        "inner": column["inner"],
        "faults": column["fault"],
        "roles": column["role"],
        "format_valid": column["format_valid"],
        "understood": column["understood"],
        "rewards": _numbers(column["reward"]),
        "parts": [{name: number(value) for name, value in parts.items()} for parts in column["reward_parts"]],
        "to_go": _numbers(column["return_to_go"]),
        "anchors": column["anchor"],
        "progress": _numbers(column["progress"]),
        "versions": column["policy_version"],
        "seconds": [_numbers(pair, _TOKEN_DIGITS) for pair in seconds],
        "columns": {name: _numbers(values) for name, values in column.items() if name not in TURNS.names},
        "tokens": column["tokens"],
        "logprobs": [_of_tokens(values) for values in column["logprobs"]],
        "entropies": [_of_tokens(values) for values in column["entropies"]],
        "last": last,
    }


def _numbers(values: Any, digits: int = 5) -> list[float | int | None]:
    return [number(value, digits) for value in values]


def _of_tokens(values: list[float] | None) -> list[float | int | None] | None:
    """Numbers of the tokens of a reply. They are most of a report, and their last digits are never read."""
    return None if values is None else _numbers(values, _TOKEN_DIGITS)
