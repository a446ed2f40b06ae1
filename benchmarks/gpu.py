"""What manyturn does on a GPU: whether it is right, how fast it is, what it takes. docs/gpu.md has the order of calls.

    python benchmarks/gpu.py correctness learner memory       these parts, each in less than nine minutes on an H100
    python benchmarks/gpu.py learner --journal DIR            goes on with what DIR holds
    python benchmarks/gpu.py smollm2 --model DIR/FILE.gguf    the part that needs weights
    python benchmarks/gpu.py all --toy --device cpu --journal /tmp/toy
    python benchmarks/gpu_table.py --journal DIR              writes result and page from the journals

A part needs no network. Each item is written into the journal when it is known; a call that is ended is called again.
"""

import argparse
import importlib
import os
import tempfile
from pathlib import Path

import gpu_items
import torch
from gpu_device import Device

from benchmarks.kit.provenance import ROOT, commit

os.environ.setdefault("HF_HUB_OFFLINE", "1")

PARTS = ("correctness", "learner", "memory", "rollout", "household", "smollm2")
WORK = Path(tempfile.gettempdir()) / "manyturn-gpu"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="+", choices=(*PARTS, "all"), metavar="PART", help=", ".join((*PARTS, "all")))
    parser.add_argument("--journal", type=Path, default=ROOT / "runs" / "gpu", help="folder of what is known")
    parser.add_argument("--minutes", type=float, default=8.5, help="limit of a part")
    parser.add_argument("--device", choices=("auto", "cuda", "cpu"), default="cuda")
    parser.add_argument("--work", type=Path, default=WORK, help="folder for what is too large for the journal")
    parser.add_argument("--model", type=Path, help="SmolLM2's GGUF file, or its folder")
    parser.add_argument("--toy", action="store_true", help="sizes that show that it runs, and nothing else")
    options = parser.parse_args()
    device = Device(options.device)
    if not device.on_gpu:
        torch.set_num_threads(1)
        if not options.toy:
            parser.error("without a GPU there is --toy alone")
    failed = False
    for part in PARTS if "all" in options.parts else options.parts:
        failed |= measure(part, device, options)
    raise SystemExit(1 if failed else 0)


def measure(part: str, device: Device, options: argparse.Namespace) -> bool:
    """Measure a part; returns whether something is left, or failed."""
    print(f"-- {part}", flush=True)
    kit = gpu_items.Kit(device, options.toy, options.work / commit(), options.model)
    items = importlib.import_module(f"gpu_{part}").items(kit)
    journal = gpu_items.Journal(options.journal, part, gpu_items.origin(device, options.toy))
    limits = (60.0, 20.0) if options.toy else (options.minutes, 1.5)  # a slow CPU is no failure
    left = gpu_items.run(items, journal, device, *limits)
    failed = [item.name for item in items if item.name not in journal.done() and item.name not in left]
    for name in failed:
        print(f"{name}: failed, see {options.journal}")
    if left:
        print(f"left: {', '.join(left)}: call again with the same --journal")
    return bool(left or failed)


if __name__ == "__main__":
    main()
