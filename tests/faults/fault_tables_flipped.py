"""A bit flips in a table or the journal of an evaluation: it is refused, or what is read is what was written."""

import json
from pathlib import Path
from typing import Any

from tally import Tally

from manyturn.agents.records.episode_log import Journal, JournalError
from manyturn.agents.records.episode_rows import read_episodes, read_turns
from manyturn.agents.records.tables import RecordsError
from manyturn.api.evaluation import evaluate
from manyturn.envs.contract.random_keys import generator

SHORT, LONG = 60, 330
_HEAD_AND_FOOT = 4000  # bytes in which every other bit flips: no page's checksum covers them


def run(count: int, seed: int, folder: Path) -> Tally:
    evaluate("random", "manyturn/Maze-v0", limit=12, out=folder / "whole")
    rng, tally, flipped = generator("flips", seed), Tally(), folder / "flipped"
    head = (folder / "whole" / "episodes.jsonl").read_text().partition("\n")[0].partition(" ")[2]

    def read_lines(file: Path) -> list[dict[str, Any]]:
        with Journal(file, json.loads(head)["settings"]) as journal:
            return journal.entries

    readers = {"episodes.parquet": read_episodes, "turns.parquet": read_turns, "episodes.jsonl": read_lines}
    written = {name: read(folder / "whole" / name) for name, read in readers.items()}
    for number in range(count):
        name = list(readers)[number % len(readers)]
        content = bytearray((folder / "whole" / name).read_bytes())
        low = max(0, len(content) - _HEAD_AND_FOOT) if number % 2 else 0
        place = int(rng.integers(8 * low, 8 * len(content)))
        content[place // 8] ^= 1 << place % 8
        flipped.write_bytes(content)
        try:
            rows = readers[name](flipped)
        except (RecordsError, JournalError):
            tally += Tally(1, 1)
            continue
        # A line of the journal that is damaged is left out, and its episode is played again.
        lines = name == "episodes.jsonl"
        same = all(row in written[name] for row in rows) if lines else rows == written[name]
        tally += Tally(1, int(same), misattributed=int(not same), notes=[] if same else [f"bit {place} of {name}"])
    return tally
