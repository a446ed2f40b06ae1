"""The ledgers of a step's episodes in a file: what the tables of turns leave out, ids of tokens above all."""

import gzip
import json
import zlib
from collections.abc import Sequence
from pathlib import Path

from manyturn.agents.play.episode import Episode
from manyturn.agents.tokens.ledger import Ledger
from manyturn.agents.trajectories.ledger_turns import ledger_from_plain, ledger_to_plain
from manyturn.agents.trajectories.trajectory import TrajectoryError
from manyturn.envs.contract.atomic_files import replace_file

Place = tuple[str, str, int]
"""Task, stage and member of an episode."""
SUFFIX = ".jsonl.gz"


def write_ledgers(path: Path, episodes: Sequence[Episode]) -> None:
    """Write the ledgers of episodes, completely or not at all."""
    lines = [
        json.dumps(
            [[episode.key.task, episode.key.stage, episode.key.member], ledger_to_plain(episode.ledger)],
            allow_nan=False,
            separators=(",", ":"),
        )
        for episode in episodes
        if episode.ledger is not None
    ]
    packed = gzip.compress("".join(f"{line}\n" for line in lines).encode(), compresslevel=6, mtime=0)
    replace_file(path, lambda aside: aside.write_bytes(packed))


def read_ledgers(path: Path) -> dict[Place, Ledger]:
    """Read a file that ``write_ledgers`` wrote. Raises TrajectoryError if it is damaged."""
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
        return {(task, stage, member): ledger_from_plain(plain) for (task, stage, member), plain in lines}
    except (OSError, EOFError, zlib.error, ValueError, KeyError, TypeError) as error:
        raise TrajectoryError(f"{path} is damaged ({error}): restore it, or remove it to go without tokens") from None
