"""A folder of trajectories that were imported: what the report, ``compare`` and ``replay:`` read of an evaluation, and
next to it the trajectories themselves, in which nothing is lost."""

import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from manyturn.agents.evaluation.summary import ABOUT, summarise
from manyturn.agents.records.episode_rows import EPISODES, TURNS, turn_schema
from manyturn.agents.records.tables import Row, table_in, write_table
from manyturn.agents.trajectories.reader import IMPORTED
from manyturn.agents.trajectories.trajectory import Trajectory, TrajectoryError, canonical, to_plain
from manyturn.envs.contract.atomic_files import replace_file, replace_text
from manyturn.envs.contract.credential_mask import masked
from manyturn.envs.contract.tasks.panel import Panel


def write_folder(folder: Path, trajectories: Sequence[Trajectory], source: str) -> dict[str, Any]:
    """Write a folder; returns the summary.

    Args:
        source: what the policy is called where the trajectories do not say it.

    Raises:
        TrajectoryError: there are none, or the folder holds something else.
    """
    if not trajectories:
        raise TrajectoryError(f"{source} holds no trajectories: nothing was written")
    if folder.exists() and any(folder.iterdir()) and not (folder / IMPORTED).is_file():
        raise TrajectoryError(f"{folder} holds something else: name another folder with --out")
    folder.mkdir(parents=True, exist_ok=True)
    episodes = [trajectory.episode for trajectory in trajectories]
    extra = list(
        dict.fromkeys(
            name for trajectory in trajectories for row in trajectory.turns for name in row if name not in TURNS.kinds
        )
    )
    turns = [{**dict.fromkeys(extra), **row} for trajectory in trajectories for row in trajectory.turns]
    about, panel = _about(trajectories, source), _panel(episodes, trajectories[0].about)
    head = {**about, "split": panel.split, "panel": panel.facts}
    summary = summarise(episodes, head)
    packed = gzip.compress(
        "".join(f"{masked(canonical(to_plain(trajectory)))}\n" for trajectory in trajectories).encode(), mtime=0
    )
    replace_file(folder / IMPORTED, lambda aside: aside.write_bytes(packed))
    write_table(table_in(folder, "episodes"), episodes, EPISODES)
    write_table(table_in(folder, "turns"), turns, turn_schema(extra))
    panel.save(folder / "panel.json")
    replace_text(folder / "summary.json", json.dumps(summary, indent=1, allow_nan=False) + "\n")
    return summary


def _about(trajectories: Sequence[Trajectory], source: str) -> dict[str, Any]:
    """Settings that all trajectories share, in the words of a summary; None where they differ or are unknown."""
    shared = {name: _common(trajectories, name) for name in ABOUT}
    members: dict[tuple[str, str], int] = {}
    for trajectory in trajectories:
        key = trajectory.episode["stage"], trajectory.episode["content"]
        members[key] = members.get(key, 0) + 1
    usual = {"env": source, "args": {}, "wrappers": [], "policy": source, "seed": 0, "max_turns": 0}
    return {
        **shared,
        **{name: value for name, value in usual.items() if shared[name] is None},
        "repeats": max(members.values()),
    }


def _common(trajectories: Sequence[Trajectory], name: str) -> Any:
    values = [trajectory.about.get(name) for trajectory in trajectories]
    return values[0] if all(value == values[0] for value in values) else None


def _panel(episodes: Sequence[Row], about: Mapping[str, Any]) -> Panel:
    """The tasks of all episodes, each problem by its first name."""
    names: dict[str, str] = {}
    for row in episodes:
        names.setdefault(row["content"], row["task"])
    if len(set(names.values())) < len(names):
        twice = next(name for name in names.values() if list(names.values()).count(name) > 1)
        raise TrajectoryError(f"two different problems are called {twice!r}: give each task an id of its own")
    splits = sorted({row["split"] for row in episodes})
    env, args = about.get("env") or "imported", about.get("args") or {}
    return Panel(env, "+".join(splits), tuple(names.values()), tuple(names), args)
