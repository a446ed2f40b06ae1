"""A few whole episodes of a step, turn by turn, for those who watch a run."""

import re
from pathlib import Path
from typing import Any, NamedTuple

from manyturn.agents.records.episode_rows import EPISODES, TURNS
from manyturn.agents.records.tables import Row, open_table
from manyturn.trainers.record.run_folder import step_tables

_OF_TURNS = ("task", "stage", "member", "turn", "role", "observation", "reply", "action", "format_valid", "understood")
_OF_EPISODES = ("task", "stage", "member", "ending", "success", "return", "turns")
_FIGURES = ("reward", "return_to_go")
_ORIGINS = ("repeats_member", "replayed")  # columns that are no credit
_MOST = 4000  # characters of a cell


class WatchedEpisode(NamedTuple):
    """One episode of a step.

    Attributes:
        episode: its row of ``records.EPISODES``.
        turns: its K rows of ``records.TURNS``, with the columns of credit and without those of tokens.
    """

    episode: Row
    turns: list[Row]


def watched(run: Path, step: int, count: int) -> list[WatchedEpisode]:
    """Up to ``count`` episodes of a step, evenly spread over its tasks; always the same ones."""
    turns_file, episodes_file = step_tables(run, step)
    episodes = open_table(episodes_file, EPISODES).read([*_OF_EPISODES]).rows()
    turns = open_table(turns_file, TURNS)
    credit = [name for name in turns.names if name not in TURNS.kinds and name not in _ORIGINS]
    by_episode: dict[tuple[Any, ...], list[Row]] = {}
    for row in turns.read([*_OF_TURNS, *_FIGURES, *credit]).rows():
        by_episode.setdefault(_key(row), []).append(row)
    chosen = (
        [episodes[number * len(episodes) // count] for number in range(count)] if count < len(episodes) else episodes
    )
    return [WatchedEpisode(episode, by_episode.get(_key(episode), [])) for episode in chosen]


def turn_table(step: int, episodes: list[WatchedEpisode]) -> tuple[list[str], list[list[Any]]]:
    """Names of columns, and a row for each turn; texts are cut at 4,000 characters, and say so."""
    first: Row = next((turn for watched in episodes for turn in watched.turns), {})
    credit = [name for name in first if name not in TURNS.kinds]
    names = ["step", "task", "member", "turn", "role", "observation", "reply", "action", "valid"]
    names += [*_FIGURES, *credit, "ending", "success", "return"]
    rows = [
        [
            step,
            *(turn[name] for name in ("task", "member", "turn", "role")),
            *(cut(turn[name]) for name in ("observation", "reply", "action")),
            turn["format_valid"] and turn["understood"],
            *(turn[name] for name in (*_FIGURES, *credit)),
            *(watched.episode[name] for name in ("ending", "success", "return")),
        ]
        for watched in episodes
        for turn in watched.turns
    ]
    return names, rows


def cut(text: str) -> str:
    """The text, or its beginning and how much was left out."""
    return text if len(text) <= _MOST else f"{text[:_MOST]} … ({len(text) - _MOST} characters left out)"


def as_code(text: str) -> str:
    """The text as a block of code in Markdown, in which nothing is rendered and no picture fetched.

    >>> print(as_code("![a](b)"))
    ```
    ![a](b)
    ```
    """
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"


def _key(row: Row) -> tuple[Any, ...]:
    return row["task"], row["stage"], row["member"]
