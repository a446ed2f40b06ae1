"""The trajectories of a run, of an evaluation, or of a folder that was imported."""

import gzip
import json
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from manyturn.agents.play.agent import AgentConfig
from manyturn.agents.records.episode_rows import read_episodes, read_turns
from manyturn.agents.records.tables import Row
from manyturn.agents.tokens.ledger import Ledger
from manyturn.agents.trajectories.token_files import SUFFIX, read_ledgers
from manyturn.agents.trajectories.trajectory import Trajectory, TrajectoryError, from_plain
from manyturn.envs.contract.tasks.env_identity import KEY

IMPORTED = f"trajectories{SUFFIX}"
_KEY = ("task", "stage", "member")
_OF_SUMMARY = ("env", "args", "wrappers", "user", "policy", "agent", "sampling", "seed", "max_turns")


def read_lines(path: Path) -> Iterator[Trajectory]:
    """The trajectories of a file of packed lines, which loses nothing. Raises TrajectoryError if it is damaged."""
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            for line in file:
                yield from_plain(json.loads(line))
    except (OSError, EOFError, zlib.error, ValueError, KeyError, TypeError) as error:
        raise TrajectoryError(f"{path} is damaged ({error}): make it again") from None


def of_tables(episodes: Path, turns: Path, ledgers: Path | None, about: Mapping[str, Any]) -> list[Trajectory]:
    """The trajectories of a pair of tables, with their tokens where these were kept."""
    ledgers_by_key: dict[tuple[Any, ...], Ledger] = {}
    if ledgers is not None and ledgers.is_file():
        ledgers_by_key |= read_ledgers(ledgers)
    parted: dict[tuple[Any, ...], list[Row]] = {}
    for row in read_turns(turns):
        parted.setdefault(tuple(row[name] for name in _KEY), []).append(row)
    trajectories = []
    for row in read_episodes(episodes):
        key = tuple(row[name] for name in _KEY)
        trajectories.append(Trajectory(row, parted.get(key, []), ledgers_by_key.get(key), about))
    return trajectories


def about_evaluation(summary: Mapping[str, Any], instructions: str) -> dict[str, Any]:
    """Settings that the trajectories of an evaluation share."""
    agent = summary["agent"]
    system = instructions if agent is None else AgentConfig.model_validate(agent).system_text(instructions)
    return {**{name: summary[name] for name in _OF_SUMMARY}, KEY: summary.get(KEY), "system": system or None}
