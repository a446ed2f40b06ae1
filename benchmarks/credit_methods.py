"""Method against method: what a recipe's own stage gains, and what the settings that were published with it gain.

    nice -n 15 python benchmarks/credit_methods.py RUN-FOLDER
    python benchmarks/credit_methods.py RUN-FOLDER --worlds repeated --minutes 30
    python benchmarks/credit_methods_table.py        # table and figure from what is there

A cell is one world, row, seed and learning rate. It is run in this process, and its line is stored in --out at once.
The same command continues; several processes may run it with one folder and one file. World follows world: first the
cells that choose each row's learning rate, then seed by seed those that count. A cell's result depends on nothing but
itself.

Refused are a tree that differs from its commit, lines of other code or other hypotheses, and a row whose method did
nothing: it ended in the weights of a row that lacks it, or played just as that. What shows this goes to a file beside
--out, and the row is not run again in that world.

The plan has 4 worlds, 12 rows, 8 seeds, and 3 learning rates on 2 further seeds: 672 cells, which we expect to take
about 3 hours of CPU. Every cell prints what is left, the table what it took.
"""

import argparse
import fcntl
import sys
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from credit import told_of
from credit_methods_cell import locked, run_cell
from credit_methods_lines import Line, append, cell_of, chosen_factor, idle_beside, read_lines, refused_beside
from credit_methods_plan import (
    WORLDS,
    Cell,
    choices,
    config_of,
    hypotheses,
    hypotheses_hash,
    order,
    peers,
)
from provenance import RESULTS, commit, refuse, same_code
from transformers.utils import logging as transformers_logging

from manyturn.trainers.record.stopping import Stopped

OUT = RESULTS / "credit_methods.jsonl"
_PAUSE = 5.0  # seconds until another process is asked again how far it is


class Wanted(NamedTuple):
    """Which part of the plan is asked for."""

    worlds: Sequence[str]
    rows: Collection[str]
    seeds: int


class Runner:
    """Works off cells that no other process works at.

    Args:
        root: folder for warm-ups and claims.
        out: file for the lines; those of rows that did nothing go to a file beside it.
        seconds: after which no cell begins.
    """

    def __init__(self, root: Path, out: Path, tiny: bool, seconds: float):
        self.root, self.out, self.tiny = root, out, tiny
        self._refused = refused_beside(out)
        self._end = time.monotonic() + seconds
        (root / "claims").mkdir(parents=True, exist_ok=True)

    def work(self, wanted: Wanted) -> bool:
        """Run what is left, until the time is over; whether nothing is left."""
        while time.monotonic() < self._end:
            left = self.left(wanted)
            if not left:
                return True
            if not any(self._claimed_and_run(cell, wanted) for cell, is_ready in left if is_ready):
                if self._nobody_works():
                    return False  # what is left waits for rows that were refused
                time.sleep(_PAUSE)
        return False

    def left(self, wanted: Wanted) -> list[tuple[Cell, bool]]:
        """Cells that have no line, and whether all that they wait for is there."""
        lines, refused = read_lines(self.out), read_lines(self._refused)
        done = {cell_of(line) for line in (*lines, *refused)}
        gone = {(line["world"], line["row"]) for line in refused}
        found = []
        for world in wanted.worlds:
            for cell in (*choices(world), *counting(lines, world, wanted.seeds)):
                if cell.row not in wanted.rows or cell in done or (world, cell.row) in gone:
                    continue
                before = [cell._replace(row=row) for row in peers(cell.row) if (world, row) not in gone]
                is_ready = all(other in done for other in before) if cell.chooses else cell.factor > 0
                found.append((cell, is_ready))
        return found

    def _claimed_and_run(self, cell: Cell, wanted: Wanted) -> bool:
        with self._claim(cell) as mine:
            if not mine or cell in {cell_of(line) for line in (*read_lines(self.out), *read_lines(self._refused))}:
                return False
            began, line = time.monotonic(), run_cell(self.root, cell, self.tiny)
            seconds = time.monotonic() - began
            refuse(self.out, line["commit"])
            with locked(self.root / "storing.lock"):  # of two rows that are alike, the second sees the first
                beside = idle_beside(line, read_lines(self.out))
                append(self._refused if beside else self.out, line | ({"beside": beside} if beside else {}))
        said = (
            f"refused: ends as {beside} does" if beside else f"{line['training'][0]:.2f} -> {line['training'][-1]:.2f}"
        )
        took = f"{line['cpu_seconds']:.0f} s of CPU, {seconds:.0f} s"
        print(f"{cell}: {said}, {took}; {self._time_left(wanted)}", flush=True)
        return True

    def _time_left(self, wanted: Wanted) -> str:
        lines = read_lines(self.out)
        left = [cell for cell, _ in self.left(wanted)]
        costs = {world: [li["cpu_seconds"] for li in lines if li["world"] == world] for world in WORLDS}
        every = [cost for found in costs.values() for cost in found] or [0.0]
        mean = {world: sum(found or every) / len(found or every) for world, found in costs.items()}
        hours = sum(mean[cell.world] for cell in left) / 3600
        return f"{len(left)} cells are left, about {hours:.1f} h of CPU"

    @contextmanager
    def _claim(self, cell: Cell) -> Iterator[bool]:
        """Whether the cell is this process's; a claim ends with its process."""
        with (self.root / "claims" / str(cell).replace("/", "-").replace(" ", "_")).open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True

    def _nobody_works(self) -> bool:
        for path in (self.root / "claims").iterdir():
            with path.open() as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    return False
        return True


def counting(lines: Sequence[Line], world: str, seeds: int) -> list[Cell]:
    """The cells of a world that count, seed by seed; their factor is 0 while it is not chosen."""
    factors = {row: chosen_factor(lines, world, row) or 0.0 for row in order()}
    return [Cell(world, row, seed, factors[row]) for seed in range(seeds) for row in order()]


def check(path: Path, tiny: bool) -> None:
    """Raise SystemExit unless every line that is there could be of this call."""
    for line in read_lines(path):
        odd = None
        if not same_code(line["commit"]):
            odd = f"of commit {line['commit']}, whose code differs: continue in a checkout of it"
        elif line["hypotheses"] != hypotheses_hash():
            odd = "of other hypotheses: take credit_methods.toml back"
        elif line["config"] != told_of(config_of(cell_of(line), tiny)):
            odd = "of another configuration"
        if odd:
            raise SystemExit(f"{path} has a line, {cell_of(line)}, that is {odd}, or name another file with --out")


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where warm-ups and claims lie; on a fast disk")
    parser.add_argument("--worlds", nargs="+", default=list(WORLDS), choices=list(WORLDS))
    parser.add_argument("--rows", nargs="+", default=order(), choices=order(), help="with those they are compared with")
    parser.add_argument("--seeds", type=int, default=hypotheses()["seeds"])
    parser.add_argument("--minutes", type=float, default=float("inf"), help="after which no cell begins")
    parser.add_argument("--tiny", action="store_true", help="cells of seconds, to try the machinery")
    parser.add_argument("--out", type=Path, default=OUT, help="file of the results")
    chosen = parser.parse_args()
    if chosen.tiny and chosen.out.resolve().is_relative_to(RESULTS):
        parser.error("--tiny measures nothing: name a file outside of benchmarks with --out")
    return chosen


def main() -> None:
    chosen = options()
    refuse(chosen.out, commit())
    for path in (chosen.out, refused_beside(chosen.out)):
        check(path, chosen.tiny)
    transformers_logging.disable_progress_bar()
    runner = Runner(chosen.folder.resolve(), chosen.out, chosen.tiny, 60 * chosen.minutes)
    rows = {*chosen.rows, *(peer for row in chosen.rows for peer in peers(row))}
    wanted = Wanted(chosen.worlds, rows, chosen.seeds)
    try:
        done = runner.work(wanted)
    except Stopped as stopped:
        print("stopped: the same command continues")
        sys.exit(stopped.exit_code)
    refused = sorted({f"{line['world']} {line['row']}" for line in read_lines(refused_beside(chosen.out))})
    if refused:
        print(f"refused, since the method did nothing: {', '.join(refused)}")
    left = len(runner.left(wanted))
    print(f"{len(read_lines(chosen.out))} cells are in {chosen.out}, {left} are left")
    sys.exit(0 if done else 1)


if __name__ == "__main__":
    main()
