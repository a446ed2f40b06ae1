"""Method against method: gains of a recipe's own stage, and of the settings that were published with it.

    nice -n 15 python -m benchmarks.credit.methods RUN-FOLDER
    python -m benchmarks.credit.methods RUN-FOLDER --worlds repeated --minutes 30
    python -m benchmarks.credit.methods.table        # tables and figures from what is there
    python -m benchmarks.credit.methods RUN-FOLDER --rate 2 --out FILE     # all rows at one rate, so that parts add up
    python -m benchmarks.credit.methods.table FILE --parts

A cell is one world, row, seed and learning rate. It is run in this process, and its line is stored in --out at once.
The same command continues; several processes may run it with one folder and one file. World follows world: first the
cells that choose each row's learning rate, then seed by seed those that count. A cell's result depends on nothing but
itself.

Refused are a tree that differs from its commit, and lines of other code, plans or hypotheses. A row that does nothing
in a world does not count there: it ended in the weights of a row that lacks it, or played as that at all rates.

A cell takes 5 to 20 seconds of CPU. Every cell prints an estimate of what remains: the number of rates that a row
needs shows on the way. The table has the time that all took.
"""

import argparse
import fcntl
import sys
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from transformers.utils import logging as transformers_logging

from benchmarks.credit.methods.cell import line_of
from benchmarks.credit.methods.plan import (
    WORLDS,
    Cell,
    config_of,
    hypotheses_hash,
    order,
    peers,
    plan_hash,
    seeds,
)
from benchmarks.credit.methods.result_store import Line, append, cell_of, choice, idle_as, read_lines
from benchmarks.kit.comparison_run import config_changes
from benchmarks.kit.provenance import RESULTS, commit, refuse, same_code
from manyturn.trainers.record.stop_signal import Stopped

OUT = RESULTS / "credit_methods.jsonl"
_PAUSE = 5.0  # seconds until another process is asked again how far it is


class Selection(NamedTuple):
    """The part of the plan to run; ``factor`` is the one rate of all rows, if there is one."""

    worlds: Sequence[str]
    rows: Collection[str]
    seeds: Sequence[int]
    factor: float | None = None


class Runner:
    """Works off cells that no other process works at.

    Args:
        root: folder for warm-ups and claims.
        out: file for the lines.
        seconds: after which no cell begins.
    """

    def __init__(self, root: Path, out: Path, tiny: bool, seconds: float):
        self.root, self.out, self.tiny = root, out, tiny
        self._end = time.monotonic() + seconds
        (root / "claims").mkdir(parents=True, exist_ok=True)

    def work(self, selection: Selection) -> bool:
        """Run what is left, until the time is over; whether nothing is left."""
        while time.monotonic() < self._end:
            cells = open_cells(read_lines(self.out), selection)
            if not cells:
                return True
            if not any(self._claimed_and_run(cell, selection) for cell in cells):
                time.sleep(_PAUSE)  # others work at all of them
        return False

    def _claimed_and_run(self, cell: Cell, selection: Selection) -> bool:
        with self._claim(cell) as mine:
            if not mine or cell in map(cell_of, read_lines(self.out)):
                return False
            began, line = time.monotonic(), line_of(self.root, cell, tiny=self.tiny)
            seconds = time.monotonic() - began
            refuse(self.out, line["commit"])
            append(self.out, line)
        progress = f"{line['training'][0]:.2f} -> {line['training'][-1]:.2f}, {line['cpu_seconds']:.0f} s of CPU"
        print(f"{cell}: {progress}, {seconds:.0f} s; {_time_left(read_lines(self.out), selection)}", flush=True)
        return True

    @contextmanager
    def _claim(self, cell: Cell) -> Iterator[bool]:
        """Take the cell for this process, if no other has it; a claim ends with its process."""
        with (self.root / "claims" / str(cell).replace("/", "-").replace(" ", "_")).open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True


def open_cells(lines: Sequence[Line], selection: Selection) -> list[Cell]:
    """Cells that could be run now: those that choose a row's rate, then those that count; idle rows have none.

    At one rate nothing is chosen, and a row that does nothing gains exactly nothing.
    """
    done = {cell_of(line) for line in lines}
    rows = [row for row in order() if row in selection.rows]
    if (rate := selection.factor) is not None:
        places = [(world, seed) for world in selection.worlds for seed in selection.seeds]
        planned = [Cell(world, row, seed, rate) for world, seed in places for row in rows]
        return [cell for cell in planned if cell not in done]
    cells = []
    for world in selection.worlds:
        alive = [row for row in rows if idle_as(lines, world, row) is None]
        chosen = {row: choice(lines, world, row) for row in alive}
        cells += [cell for row in alive for cell in chosen[row].missing]
        ready = {row: choice.factor for row, choice in chosen.items() if choice.factor is not None}
        cells += [Cell(world, row, seed, factor) for seed in selection.seeds for row, factor in ready.items()]
    return [cell for cell in cells if cell not in done]


def _time_left(lines: Sequence[Line], selection: Selection) -> str:
    """An estimate of the cells and time to go; a row with an open rate counts with its seeds."""
    cells = open_cells(lines, selection)
    opened = {(cell.world, cell.row) for cell in cells if cell.chooses}
    numbers = [len(cells), len(selection.seeds) * len(opened)]
    mean = sum(line["cpu_seconds"] for line in lines) / len(lines)
    return f"about {sum(numbers)} cells are left, {mean * sum(numbers) / 3600:.1f} h of CPU"


def check(path: Path, tiny: bool, rates: Mapping[str, float] = MappingProxyType({})) -> None:
    """Raise SystemExit unless every line that is there could be of this call.

    Args:
        rates: world -> the one rate that its rows are to have.
    """
    for line in read_lines(path):
        odd = None
        if not same_code(line["commit"]):
            odd = f"of commit {line['commit']}, whose code differs: continue in a checkout of it"
        elif (line["hypotheses"], line["plan"]) != (hypotheses_hash(), plan_hash()):
            odd = "of other hypotheses or another plan: take hypotheses.toml and the plan's files back"
        elif line["config"] != config_changes(config_of(cell_of(line), tiny=tiny)):
            odd = "of another configuration"
        elif line["factor"] != rates.get(line["world"], line["factor"]):
            odd = f"at another rate than {rates[line['world']]:g}"
        if odd:
            raise SystemExit(f"{path} has a line, {cell_of(line)}, that is {odd}, or name another file with --out")


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where warm-ups and claims lie; on a fast disk")
    parser.add_argument("--worlds", nargs="+", default=list(WORLDS), choices=list(WORLDS))
    parser.add_argument("--rows", nargs="+", default=order(), choices=order(), help="with those they are compared with")
    parser.add_argument("--seeds", type=int, default=len(seeds()), help="how many, from the first one")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="after which no cell begins")
    parser.add_argument("--tiny", action="store_true", help="cells of seconds, to try the machinery")
    parser.add_argument("--rate", type=float, help="of all rows, in multiples of a world's own; into a file of its own")
    parser.add_argument("--out", type=Path, default=OUT, help="file of the results")
    chosen = parser.parse_args()
    if chosen.rate is not None and chosen.out == OUT:
        parser.error(f"rows at one rate do not belong among those that chose theirs: name a file other than {OUT.name}")
    if chosen.tiny and chosen.out.resolve().is_relative_to(RESULTS):
        parser.error("--tiny measures nothing: name a file outside of benchmarks with --out")
    return chosen


def main() -> None:
    chosen = options()
    refuse(chosen.out, commit())
    check(chosen.out, chosen.tiny, {world: chosen.rate for world in chosen.worlds if chosen.rate is not None})
    transformers_logging.disable_progress_bar()
    runner = Runner(chosen.folder.resolve(), chosen.out, chosen.tiny, 60 * chosen.minutes)
    rows = {*chosen.rows, *(peer for row in chosen.rows for peer in peers(row))}
    selection = Selection(chosen.worlds, rows, seeds()[: chosen.seeds], chosen.rate)
    try:
        done = runner.work(selection)
    except Stopped as stopped:
        print("stopped: the same command continues")
        sys.exit(stopped.exit_code)
    lines = read_lines(chosen.out)
    for world in chosen.worlds:
        for row in order():
            if row in rows and (peer := idle_as(lines, world, row)):
                print(f"does not count, since it did nothing: {row} in {world} does as {peer}")
    print(f"{len(lines)} cells are in {chosen.out}" + ("" if done else f"; {_time_left(lines, selection)}"))
    sys.exit(0 if done else 1)


if __name__ == "__main__":
    main()
