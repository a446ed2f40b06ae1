"""Inject faults of every class and print what became of them; the exit status says whether all is well.

    python tests/faults/run.py                      a few of each class
    python tests/faults/run.py --long               what `make faults` runs
    python tests/faults/run.py --only env_raises    one class

Each class is a module beside this file with ``SHORT`` and ``LONG``, how many faults to inject, and
``run(count, seed, folder) -> Tally``. Every random choice derives from the seed.
"""

import argparse
import importlib
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tally import Tally

HERE = Path(__file__).parent
CLASSES = sorted(path.stem for path in HERE.glob("fault_*.py"))
_COLUMNS = ("injected", "survived", "lost", "duplicated", "misattributed", "orphans", "bit_exact", "resumes")


def inject(name: str, long: bool, seed: int) -> Tally:
    """Run one class in a folder of its own."""
    module = importlib.import_module(name)
    with tempfile.TemporaryDirectory(prefix=f"{name}-") as folder:
        return module.run(module.LONG if long else module.SHORT, seed, Path(folder))


def _provenance() -> Any:
    sys.path.insert(0, str(HERE.parents[1] / "benchmarks"))
    return importlib.import_module("provenance")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--only", action="append", help="a class, with or without fault_; may be given again")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="write the counts there")
    told = parser.parse_args()
    chosen = [f"fault_{name.removeprefix('fault_')}" for name in told.only or CLASSES]
    unknown = sorted(set(chosen) - set(CLASSES))
    if unknown:
        parser.error(f"no class {unknown[0]}: there is {', '.join(CLASSES)}")
    about = _provenance().origin(told.json, ("manyturn",)) if told.json else {}
    print(f"{'class':26}" + "".join(f"{name:>14}" for name in _COLUMNS) + f"{'seconds':>10}")
    found, total = {}, Tally()
    for name in chosen:
        began = time.monotonic()
        tally = inject(name, told.long, told.seed)
        seconds = time.monotonic() - began
        found[name], total = {**tally.plain(), "clean": tally.clean, "seconds": round(seconds, 1)}, total + tally
        _print(name.removeprefix("fault_"), tally, seconds)
    _print("all", total, None)
    for note in total.notes:
        print(f"  {note}")
    if told.json:
        _provenance().write(told.json, about, {"seed": told.seed, "classes": found, "all": total.plain()})
    sys.exit(not all(tally["clean"] for tally in found.values()))


def _print(name: str, tally: Tally, seconds: float | None) -> None:
    numbers = "".join(f"{getattr(tally, column):14}" for column in _COLUMNS)
    print(f"{name:26}{numbers}" + ("" if seconds is None else f"{seconds:10.1f}"), flush=True)


if __name__ == "__main__":
    main()
