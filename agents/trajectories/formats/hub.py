"""A folder as the Hugging Face Hub and ``datasets.load_dataset`` read it: a card, and a Parquet file for each split.

A row is an episode. ``messages`` and ``reward`` are what trainers look for, ``record`` is the full trajectory as JSON,
in which nothing is lost.
"""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from manyturn.agents.trajectories.atomic_folder import new_folder
from manyturn.agents.trajectories.conversation import conversations
from manyturn.agents.trajectories.hub_card import header
from manyturn.agents.trajectories.trajectory import Trajectory, TrajectoryError, canonical, from_plain, to_plain
from manyturn.envs.contract.credential_mask import masked_value

DATA = "data"
_COPIED = ("task", "content", "split", "difficulty", "stage", "member", "success", "ending", "turns")
_CARD = """{header}

# Trajectories of language-model agents

{count} episodes, written by manyturn. Their texts are those of models and environments: show them as text only.

| environment | policy | split | episodes | reached the goal |
|---|---|---|---|---|
{table}

| column | |
|---|---|
| `messages` | system text, observations and replies; where an episode has several roles, the first's |
| `reward` | sum of rewards; null after an error, which is never a reward |
| `rewards` | a reward for each turn |
| `success`, `ending` | whether the goal was reached, null where that is not known; how the episode ended |
| `task`, `content`, `split` | the problem's name, the hash of what determines it, its split |
| `stage`, `member` | what it was played for, and its place in the group of its task |
| `record` | the full trajectory as JSON: tokens, log-probabilities, reward parts, credit, as far as they were kept |

`manyturn trajectories import FOLDER --out runs/imported` reads it back.
"""


def write(out: Path, trajectories: Iterable[Trajectory]) -> int:
    """Write the folder; returns how many episodes it has."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    message = pa.struct([(name, pa.string()) for name in ("role", "content", "reasoning_content")])
    texts = ("task", "content", "split", "difficulty", "stage", "ending", "env", "policy", "record")
    kinds = {"number": pa.int64(), **dict.fromkeys(texts, pa.string()), "member": pa.int64(), "turns": pa.int64()}
    kinds |= {
        "success": pa.bool_(),
        "reward": pa.float64(),
        "rewards": pa.list_(pa.float64()),
        "messages": pa.list_(message),
    }
    parted: dict[str, list[dict[str, Any]]] = {}
    for number, trajectory in enumerate(trajectories):
        row = masked_value(_row(number, trajectory))
        parted.setdefault(re.sub(r"\W", "_", row["split"]) or "unknown", []).append(row)
    with new_folder(out) as folder:
        (folder / DATA).mkdir()
        for split, rows in parted.items():
            table = pa.Table.from_pylist(rows, schema=pa.schema(list(kinds.items())))
            pq.write_table(table, folder / DATA / f"{split}.parquet", compression="zstd")
        (folder / "README.md").write_text(_card(parted), encoding="utf-8")
    return sum(map(len, parted.values()))


def read(folder: Path) -> list[Trajectory]:
    """Read a folder that ``write`` wrote. Raises TrajectoryError if it is something else, or damaged."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    numbered: list[tuple[int, Trajectory]] = []
    for file in sorted((folder / DATA).glob("*.parquet")):
        try:
            for row in pq.read_table(file, columns=["number", "record"]).to_pylist():
                numbered.append((row["number"], from_plain(json.loads(row["record"]))))
        except (pa.ArrowException, OSError, ValueError, KeyError, TypeError) as error:
            raise TrajectoryError(f"{file} holds no trajectories of ours ({error}): export it again") from None
    return [trajectory for _, trajectory in sorted(numbered, key=lambda pair: pair[0])]


def _row(number: int, trajectory: Trajectory) -> dict[str, Any]:
    first = conversations(trajectory)[:1]
    return {
        "number": number,
        **{name: trajectory.episode[name] for name in _COPIED},
        "reward": trajectory.episode["return"],
        "env": trajectory.about.get("env"),
        "policy": trajectory.about.get("policy"),
        "messages": first[0].messages if first else [],
        "rewards": [row["reward"] for row in trajectory.turns],
        "record": canonical(to_plain(trajectory)),
    }


def _card(parted: dict[str, list[dict[str, Any]]]) -> str:
    rows = [row for group in parted.values() for row in group]
    counted: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row in rows:
        counted.setdefault((str(row["env"]), str(row["policy"]), row["split"]), []).append(row)
    table = [
        f"| {' | '.join(map(_cell, key))} | {len(group)} | {sum(row['success'] is True for row in group)} |"
        for key, group in counted.items()
    ]
    files = {split: f"{DATA}/{split}.parquet" for split in parted}
    about = header("Trajectories of language-model agents", ("manyturn", "agents", "trajectories"), len(rows), files)
    return _CARD.format(header=about, count=len(rows), table="\n".join(table))


def _cell(text: str) -> str:
    """A name as code, in which Markdown means nothing."""
    return "`" + re.sub(r"[`|\s]+", " ", text).strip() + "`"
