"""The lines of the comparison of credit methods: storing them, and what they decide among each other."""

import fcntl
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.credit.methods.plan import BOUNDS, CHOICE_SEEDS, FACTORS, LAST_STEPS, Cell, choices, peers

Line = dict[str, Any]
"""What is kept of a cell; see ``cell.line_of``."""


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


def cell_of(line: Line) -> Cell:
    """The cell of a line."""
    return Cell(line["world"], line["row"], line["seed"], line["factor"])


class Choice(NamedTuple):
    """State of the choice of a row's learning rate in a world.

    Attributes:
        factor: of the world's own rate; None while cells are missing.
        missing: cells that are to be run next.
        at_bound: whether the best factor is the last that may be tried.
    """

    factor: float | None
    missing: Sequence[Cell] = ()
    at_bound: bool = False


def choice(lines: Sequence[Line], world: str, row: str) -> Choice:
    """The factor with the highest success in the last steps of training; of equal ones the smallest.

    While it is the least or the greatest of those that were tried, the next one by doubling is tried, too.
    """
    scores: dict[Cell, float] = {}
    for line in lines:
        if (line["world"], line["row"]) == (world, row) and line["seed"] in CHOICE_SEEDS:
            last = line["training"][-LAST_STEPS:]
            scores[cell_of(line)] = sum(last) / len(last)
    factors = list(FACTORS)
    while True:
        cells = choices(world, row, factors)
        if missing := [cell for cell in cells if cell not in scores]:
            return Choice(None, missing)
        totals = {factor: sum(scores[cell] for cell in cells if cell.factor == factor) for factor in factors}
        best = max(factors, key=lambda factor: (totals[factor], -factor))
        if min(factors) < best < max(factors) or best in BOUNDS:
            return Choice(best, at_bound=best in BOUNDS)
        factors = sorted([*factors, best / 2 if best == min(factors) else best * 2])


def idle_as(lines: Sequence[Line], world: str, row: str) -> str | None:
    """The row without the method, or without a part of it, that does just the same; None where there is none.

    They are alike if a cell of one seed and rate ended in the same weights, or if all of those that choose rates played
    the same episodes: then the weights differ by rounding alone. Nothing is said before these cells are there.
    """
    by_cell = {cell_of(line): line for line in lines if line["world"] == world}
    for peer in peers(row):
        pairs = [(by_cell.get(cell), by_cell.get(cell._replace(row=peer))) for cell in choices(world, row)]
        both = [(ours, theirs) for ours, theirs in pairs if ours and theirs]
        played = ("training", "trained_tokens", "successes")
        if any(ours["weights"] == theirs["weights"] for ours, theirs in both) or (
            len(both) == len(pairs) and all(ours[what] == theirs[what] for ours, theirs in both for what in played)
        ):
            return peer
    return None
