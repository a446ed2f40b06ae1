"""Speed and memory of WebShop on one core, from the official files of 1,000 products.

    python benchmarks/shop_speed.py DIR    DIR holds items_shuffle_1000.json and items_ins_v2_1000.json; half a minute

Every call is timed alone (resets in blocks), list of commands, anchor and progress included, after one untimed round
that opens other products; no search is remembered. A figure is the median of CPU milliseconds of this process. Start
(seconds until the first observation) and memory (MiB: the peak of the process, and what each further environment adds)
are medians over fresh processes.

Beside them stand figures of the original (princeton-nlp/WebShop 64fa2a5 with pyserini and spaCy, 1,000 products). They
were made on another, loaded machine: only orders of magnitude can be compared.
"""

import argparse
import gc
import json
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path
from statistics import median

from env_speed import machine

from manyturn.envs.shop.env import WebShop

RESULTS = Path(__file__).parent / "results" / "shop_speed.json"
TASKS, ENVIRONMENTS = 300, 500
_BLOCK = 20
# What is measured: unit, limit, and what was measured of the original.
ROWS: dict[str, tuple[str, float, float | None]] = {
    "reset": ("ms", 0.1, 5.6),
    "search": ("ms", 1, 49),
    "open an item": ("ms", 0.1, 29),
    "choose an option": ("ms", 0.1, 23),
    "read a sub-page": ("ms", 0.1, 11),
    "previous page": ("ms", 0.1, 20),
    "next page": ("ms", 0.1, None),
    "buy": ("ms", 0.3, 33),
    "start": ("s", 1, 15.8),
    "process": ("MiB", 60, 565),
    "environment": ("MiB", 20 / 1024, 565),
}
_FRESH = """
import sys, time
from pathlib import Path
import manyturn.envs.shop.env as shop
def mib(what):
    status = Path("/proc/self/status").read_text()
    return int(status.partition(what + ":")[2].split()[0]) / 1024
def first(seed):
    env = shop.WebShop(data=sys.argv[2])
    env.reset(seed=seed)
    return env
env = first(0)
print(time.time() - float(sys.argv[1]), mib("VmHWM"))
before, others = mib("VmRSS"), [first(seed) for seed in range(int(sys.argv[3]))]
for env in others:
    env.step(env.expert())
print((mib("VmRSS") - before) / len(others))
"""


def calls(data: Path) -> dict[str, list[float]]:
    """What is called -> CPU milliseconds of each call."""
    env, times = WebShop(data=data, max_turns=1000), defaultdict[str, list[float]](list)
    pool = env.tasks("train")
    tasks = [pool[number * 7 % len(pool)].id for number in range(TASKS)]
    for first in range(0, TASKS, _BLOCK):
        block = tasks[first : first + _BLOCK]
        start = time.process_time_ns()
        for seed, task in enumerate(block):
            env.reset(seed=seed, options={"task": task})
        times["reset"].append((time.process_time_ns() - start) / 1e6 / len(block))
    for rank in (5, 0):
        for number, task in enumerate(tasks):
            found = visit(env, task, rank + number, f"{rank} {number}")
            if rank == 0:
                for name, took in found:
                    times[name].append(took)
    return times


def visit(env: WebShop, task: str, rank: int, query: str) -> list[tuple[str, float]]:
    """Search, turn pages, open the product at a rank, choose each option, read, buy: name and milliseconds of each."""
    env.reset(seed=0, options={"task": task})
    [search] = env.admissible()
    times = []

    def step(name: str, action: str) -> None:
        start = time.process_time_ns()
        env.step(action)
        times.append((name, (time.process_time_ns() - start) / 1e6))

    step("search", f"{search[:-1]} {query}]")
    step("next page", "click[next >]")
    step("previous page", "click[< prev]")
    links = env.admissible()[2:]
    step("open an item", links[rank % len(links)])
    for option in env.admissible()[6:]:
        step("choose an option", option)
    for name in ("description", "features"):
        step("read a sub-page", f"click[{name}]")
        step("previous page", "click[< prev]")
    step("buy", "click[buy now]")
    return times


def fresh(data: Path) -> dict[str, float]:
    """Start and memory of a process of its own."""
    code = [sys.executable, "-c", _FRESH, str(time.time()), str(data), str(ENVIRONMENTS)]
    printed = subprocess.run(code, check=True, capture_output=True, text=True).stdout.split()
    return dict(zip(("start", "process", "environment"), map(float, printed), strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description="Speed and memory of WebShop on one core.")
    parser.add_argument("data", type=Path, metavar="DIR", help="folder of the official files")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    found: dict[str, list[float]] = defaultdict(list)
    for _ in range(options.repeats):
        for name, value in fresh(options.data).items():
            found[name].append(value)
    gc.disable()
    for name, values in calls(options.data).items():
        found[name] += values
    rows = []
    print(f"{'':<20}{'median':>12}{'limit':>10}{'original':>12}")
    for name, (unit, limit, original) in ROWS.items():
        value = float(f"{median(found[name]):.3g}")
        rows.append({"what": name, "unit": unit, "median": value, "limit": limit, "original": original})
        late = "" if value <= limit else "  above the limit"
        print(f"{name:<20}{value:>8} {unit:<4}{limit:>9.3g}{original or '-':>12}{late}")
    task = WebShop(data=options.data).tasks("train")[0]
    record = {"environment": machine(), "files": task.params["files"], "repeats": options.repeats, "rows": rows}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(record, indent=1) + "\n")
    print(f"written to {options.out}")


if __name__ == "__main__":
    main()
