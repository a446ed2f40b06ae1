"""A GPU in one short run: is it right, how fast is it, what does it take. docs/gpu.md has the literal command.

    python benchmarks/gpu.py short --journal DIR                 all items, within 535 seconds on an H100
    python benchmarks/gpu.py short smoke memory --journal DIR    some of them
    python benchmarks/gpu.py short --toy --device cpu --journal /tmp/toy
    python benchmarks/gpu.py pack                                fills gpu-kit/ for a machine without network
    python benchmarks/gpu.py table --journal DIR                 writes result and page from the rows

Needs no network. Each row is on disk as soon as it is known.
"""

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1])  # in place of this folder: where there is no installed manyturn

from benchmarks.gpu_kit.measurement_log import Dependencies  # noqa: E402

DEPENDENCIES = Dependencies()  # before anything that rows depend on is read

import argparse  # noqa: E402
import os  # noqa: E402
import time  # noqa: E402

from benchmarks.gpu_kit import cases, schedule  # noqa: E402
from benchmarks.kit.provenance import ROOT, commit  # noqa: E402

CARRIED = ROOT / "gpu-kit"


def main() -> int:
    """Run a command; returns its exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    short = commands.add_parser("short", help="measure")
    short.add_argument("items", nargs="*", metavar="ITEM", help=", ".join(item.name for item in schedule.ITEMS))
    short.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    short.add_argument("--seconds", type=float, default=schedule.SECONDS, help="limit of all items together")
    short.add_argument("--toy", action="store_true", help="sizes that show that it runs, and nothing else")
    short.add_argument("--carried", type=Path, default=CARRIED, help="folder that the command pack has filled")
    short.add_argument("--work", type=Path, default=schedule.default_work(), help="folder for what may be lost")
    table = commands.add_parser("table", help="write benchmarks/results/gpu.json and docs/gpu.md")
    for command in (short, table):
        command.add_argument("--journal", type=Path, default=ROOT / "runs" / "gpu", help="folder of the rows")
    pack = commands.add_parser("pack", help="what a machine without network needs")
    pack.add_argument("--carried", type=Path, default=CARRIED)
    commands.add_parser("item").add_argument("session", help="what a process of an item is started with")
    options = parser.parse_args()
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    if options.command == "item":
        return cases.run_item(options.session, DEPENDENCIES)
    if options.command == "short":
        return _short(options)
    if options.command == "table":
        from benchmarks.gpu_kit import table as tables

        return tables.main(options.journal)
    from benchmarks.gpu_kit.carried import pack as packing

    return packing.main(options.carried)


def _short(options: argparse.Namespace) -> int:
    if options.device == "cpu" and not options.toy:
        raise SystemExit("without a GPU there is only --toy: add it to try the kit")
    places = (options.journal.resolve(), options.carried.resolve(), options.work.resolve())
    session = cases.Session("", *places, options.device, options.toy, commit(), time.time(), 0.0)
    rows = schedule.run(session, schedule.items_called(options.items), options.seconds)
    failed = [row for row in rows if "error" in row or not row.get("figures", {}).get("ok", True)]
    print(f"{len(rows)} rows in {options.journal}, {len(failed)} of them failed or outside of their bounds")
    for row in failed:
        print(f"  {row['item']} | {row['case']} | {row.get('error', 'outside of its bounds')}")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
