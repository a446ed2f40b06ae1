"""The lines of the comparison of credit methods: storing them, and what they decide among each other."""

import fcntl
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from credit_methods_plan import CHOICE_SEEDS, FACTORS, LAST_STEPS, Cell, peers

Line = dict[str, Any]
"""What is kept of a cell; see ``credit_methods_cell.run_cell``."""


def read_lines(path: Path) -> list[Line]:
    """The lines that are there to the end; one that a process was killed over is none."""
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]


def append(path: Path, line: Line) -> None:
    """Store a line before anything else is done; a line that was cut off is removed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        file.truncate(file.read().rfind(b"\n") + 1)
        file.write(json.dumps(line, allow_nan=False).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


def refused_beside(out: Path) -> Path:
    """Where the lines of rows go that did nothing."""
    return out.with_name(f"{out.stem}_refused{out.suffix}")


def cell_of(line: Line) -> Cell:
    """Which cell a line is of."""
    return Cell(line["world"], line["row"], line["seed"], line["factor"])


def chosen_factor(lines: Sequence[Line], world: str, row: str) -> float | None:
    """The learning rate of a row in a world, as a factor; None until all that choose it are there.

    It is the one with the highest success in the last steps of training; of equal ones the smallest.
    """
    found: dict[float, list[float]] = {factor: [] for factor in FACTORS}
    for line in lines:
        if (line["world"], line["row"]) == (world, row) and line["seed"] in CHOICE_SEEDS:
            last = line["training"][-LAST_STEPS:]
            found[line["factor"]].append(sum(last) / len(last))
    if any(len(scores) < len(CHOICE_SEEDS) for scores in found.values()):
        return None
    return max(FACTORS, key=lambda factor: (sum(found[factor]), -factor))


def idle_beside(line: Line, lines: Sequence[Line]) -> str | None:
    """The row without the method, or without a part of it, that ended alike; None where the method did something."""
    for other in lines:
        same = cell_of(other) == cell_of(line)._replace(row=other["row"])
        if not same or other["row"] not in peers(line["row"]):
            continue
        # What differs by rounding alone plays the same episodes, and did nothing either.
        played = all(other[what] == line[what] for what in ("training", "successes", "trained_tokens"))
        if played or other["weights"] == line["weights"]:
            return other["row"]
    return None
