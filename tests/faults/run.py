"""Inject faults of every class and print what became of them; the exit status says whether all is well.

    python tests/faults/run.py                      a few of each class
    python tests/faults/run.py --long               what `make faults` runs
    python tests/faults/run.py --only env_raises    one class

Each class is a module beside this file with ``SHORT`` and ``LONG``, how many faults to inject, and
``run(count, seed, folder) -> Tally``. Where it names a package in ``NEEDS``, or ``lacking()`` names something, it is
left out without that. Every random choice derives from the seed. ``--only`` with ``--json`` adds to the counts that a
file has of the same code.
"""

import argparse
import importlib
import json
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tally import Tally

HERE = Path(__file__).parent
CLASSES = sorted(path.stem for path in HERE.glob("fault_*.py"))
_COLUMNS = ("injected", "survived", "lost", "duplicated", "misattributed", "orphans", "bit_exact", "resumes")
sys.path += [str(HERE.parents[1]), str(HERE.parent / "needs")]


def inject(name: str, long: bool, seed: int) -> Tally:
    """Run one class in a folder of its own."""
    module = importlib.import_module(name)
    with tempfile.TemporaryDirectory(prefix=f"{name}-") as folder:
        return module.run(module.LONG if long else module.SHORT, seed, Path(folder))


def missing(name: str) -> str:
    """What a class needs and is not here, a package or something else; empty if it has all."""
    module = importlib.import_module(name)
    package = getattr(module, "NEEDS", "")
    spec = find_spec(package) if package else None
    if package and (spec is None or spec.origin is None):  # a folder may have its name
        return f"the package {package}"
    return getattr(module, "lacking", str)()


def _provenance() -> Any:
    return importlib.import_module("benchmarks.kit.provenance")


def _earlier(told: argparse.Namespace) -> dict[str, Any]:
    """The classes that a file has already, where only some are run and it is of the same code, size and seed."""
    if not told.only or not told.json or not told.json.is_file():
        return {}
    found = json.loads(told.json.read_text())
    same = found["seed"] == told.seed and ("--long" in found["command"]) == told.long
    return found["classes"] if same and _provenance().same_code(found["commit"]) else {}


def _all(classes: dict[str, Any]) -> Tally:
    """The sum of classes as a file has them."""
    total = Tally()
    for found in classes.values():
        total += Tally(**{name: found[name] for name in vars(total)})
    return total


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
    found: dict[str, Any] = {}
    print(f"{'class':26}" + "".join(f"{name:>14}" for name in _COLUMNS) + f"{'seconds':>10}")
    for name in chosen:
        if lack := missing(name):
            print(f"{name.removeprefix('fault_'):26} left out: it needs {lack}", flush=True)
            continue
        began = time.monotonic()
        tally = inject(name, told.long, told.seed)
        seconds = time.monotonic() - began
        found[name] = {**tally.plain(), "clean": tally.clean, "seconds": round(seconds, 1)}
        _print(name.removeprefix("fault_"), tally, seconds)
        if told.json:
            _write(told, about, found)
    total = _all(found)
    _print("all", total, None)
    for note in total.notes:
        print(f"  {note}")
    sys.exit(not found or not all(one["clean"] for one in found.values()))


def _write(told: argparse.Namespace, about: dict[str, Any], found: dict[str, Any]) -> None:
    """Write what there is by now, next to what others may have written meanwhile."""
    classes = dict(sorted({**_earlier(told), **found}.items()))
    if set(classes) - set(found):
        about = {**about, "command": f"python tests/faults/run.py{' --long' * told.long} --only CLASS, for each"}
    _provenance().write(told.json, about, {"seed": told.seed, "classes": classes, "all": _all(classes).plain()})


def _print(name: str, tally: Tally, seconds: float | None) -> None:
    numbers = "".join(f"{getattr(tally, column):14}" for column in _COLUMNS)
    print(f"{name:26}{numbers}" + ("" if seconds is None else f"{seconds:10.1f}"), flush=True)


if __name__ == "__main__":
    main()
