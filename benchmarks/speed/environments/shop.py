"""Speed and memory of the shops on one core: 1,000 products in memory, 100,000 in memory, 100,000 prepared on disk.

    python -m benchmarks.speed.environments.shop          made products, no downloads; three minutes
    python -m benchmarks.speed.environments.shop DIR      besides, WebShop's official files in DIR

Every call is timed alone (resets in blocks), list of commands, anchor and progress included, after one untimed round
that opens other products; no search is remembered. A task is made when it is first asked for, and remembered a while:
a reset is of a task that has been made, as for all members of a group but the first; that of a new one stands apart.
A figure is the median of CPU milliseconds of this process. Start (seconds until the first observation), memory (MiB:
the peak of the process, the part of it that no file backs and no other process shares, and what each further
environment adds) are medians over fresh processes.

The products on disk are made ones in the layout of WebShop's full set, their descriptions drawn out to the length of
real ones. What its 1.18 million products would take is extrapolated in proportion, not measured.
"""

import argparse
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.kit.provenance import RESULTS, origin, write
from manyturn.envs.contract.random_keys import generator
from manyturn.envs.contract.registration.builtin_envs import register_all
from manyturn.envs.contract.registration.env_registry import make
from manyturn.envs.shop.generated.product_generator import goods
from manyturn.envs.shop.shop_env import VisitEnv
from manyturn.envs.shop.webshop.records import ALL_ATTRIBUTES, ALL_PRODUCTS

OUT = RESULTS / "shop_speed.json"
TASKS, ENVIRONMENTS = 300, 500
FEW, MANY, ALL = 1000, 100_000, 1_181_436  # products; the last is the size of WebShop's full set
_BLOCK, _WORDS = 20, 100
# What is measured: unit, limit with 1,000 products, limit with 100,000.
ROWS: dict[str, tuple[str, float | None, float | None]] = {
    "reset": ("ms", 0.1, None),
    "reset, new task": ("ms", None, None),
    "search": ("ms", 1, 20),
    "open an item": ("ms", 0.1, None),
    "choose an option": ("ms", 0.1, None),
    "read a sub-page": ("ms", 0.1, None),
    "previous page": ("ms", 0.1, None),
    "next page": ("ms", 0.1, None),
    "buy": ("ms", 0.3, None),
    "start": ("s", 1, None),
    "process": ("MiB", 60, None),
    "not shared": ("MiB", None, None),
    "environment": ("MiB", 20 / 1024, None),
}
_FRESH = """
import json, sys, time
from pathlib import Path
from manyturn.envs.contract.registration.builtin_envs import register_all
from manyturn.envs.contract.registration.env_registry import make
def mib(what):
    return int(Path("/proc/self/status").read_text().partition(what + ":")[2].split()[0]) / 1024
def first(seed):
    env = make(sys.argv[2], **json.loads(sys.argv[3])).unwrapped
    env.reset(seed=seed)
    return env
register_all()
env = first(0)
print(time.time() - float(sys.argv[1]), mib("VmHWM"), mib("RssAnon"))
before, others = mib("RssAnon"), [first(seed) for seed in range(int(sys.argv[4]))]
for env in others:
    env.step(env.expert())
print((mib("RssAnon") - before) / len(others))
"""
_PREPARE = """
import sys, time
from pathlib import Path
from manyturn.api.webshop_data import webshop
assert webshop(Path(sys.argv[1]))
peak = int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) / 1024
print(time.process_time(), peak)
"""


def calls(env: VisitEnv) -> dict[str, list[float]]:
    """Name of a call -> CPU milliseconds of each."""
    times, pool = defaultdict[str, list[float]](list), env.tasks("train")
    tasks = [pool[number * 7 % len(pool)].id for number in range(TASKS)]
    for name, options in (("reset, new task", [None] * TASKS), ("reset", [{"task": task} for task in tasks])):
        for first in range(0, TASKS, _BLOCK):
            start = time.process_time_ns()
            for seed in range(first, first + _BLOCK):
                env.reset(seed=seed, options=options[seed])
            times[name].append((time.process_time_ns() - start) / 1e6 / _BLOCK)
    for rank in (5, 0):
        for number, task in enumerate(tasks):
            visited = visit(env, task, rank + number, f"{rank} {number}")
            if rank == 0:
                for name, took in visited:
                    times[name].append(took)
    return times


def visit(env: VisitEnv, task: str, rank: int, query: str) -> list[tuple[str, float]]:
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


def fresh(name: str, kwargs: dict[str, Any]) -> dict[str, float]:
    """Start and memory of a process of its own."""
    code = [sys.executable, "-c", _FRESH, str(time.time()), name, json.dumps(kwargs), str(ENVIRONMENTS)]
    printed = subprocess.run(code, check=True, capture_output=True, text=True).stdout.split()
    return dict(zip(("start", "process", "not shared", "environment"), map(float, printed), strict=True))


def measure(name: str, kwargs: dict[str, Any], repeats: int) -> dict[str, float]:
    """Name of a measurement -> its median."""
    medians: dict[str, list[float]] = defaultdict(list)
    for _ in range(repeats):
        for what, value in fresh(name, kwargs).items():
            medians[what].append(value)
    env = make(name, **kwargs, max_turns=1000).unwrapped
    assert isinstance(env, VisitEnv)
    gc.disable()
    medians |= calls(env)
    gc.enable()
    return {what: float(f"{median(medians[what]):.3g}") for what in ROWS}


def write_full(folder: Path) -> None:
    """Made products as files in the layout of WebShop's full set."""
    rng, products = generator("shop speed"), goods(0, MANY).catalogue.products
    words = [word for product in products[:FEW] for word in product.document().split()]
    with (folder / ALL_PRODUCTS).open("w") as file, (folder / ALL_ATTRIBUTES).open("w") as about:
        for number, product in enumerate(products):
            drawn = " ".join(words[spot] for spot in rng.integers(len(words), size=_WORDS))
            options = {name: [{"value": value} for value in values] for name, values in product.options.items()}
            record = {
                "asin": product.id,
                "name": product.title,
                "full_description": f"{product.description} {drawn} no{number}",
                "small_description": list(product.features),
                "customization_options": options,
                "pricing": product.price_tag,
                "query": product.kind,
                "product_category": product.path,
                "category": product.department,
            }
            goal = {"attributes": product.attributes, "instruction_attributes": product.attributes[:2]}
            goal["instruction"] = f"Find me {product.kind} with {', '.join(product.attributes[:2])}"
            file.write(f"{',' if number else '['}\n{json.dumps(record)}")
            about.write(f"{',' if number else '{'}\n{json.dumps(product.id)}: {json.dumps(goal)}")
        file.write("]")
        about.write("}")


def prepared(repeats: int) -> tuple[dict[str, float], dict[str, float]]:
    """Medians of 100,000 products on disk, and what preparing them took."""
    with tempfile.TemporaryDirectory() as name:
        data = Path(name) / "data"
        data.mkdir()
        os.environ["MANYTURN_CACHE"] = str(Path(name) / "cache")
        write_full(data)
        began = time.perf_counter()
        code = [sys.executable, "-c", _PREPARE, str(data)]
        printed = subprocess.run(code, check=True, capture_output=True, text=True).stdout.splitlines()[-1].split()
        size = sum(path.stat().st_size for path in Path(name).glob("cache/**/*") if path.is_file()) / 2**20
        cost = {"CPU s": float(printed[0]), "wall s": time.perf_counter() - began, "peak MiB": float(printed[1])}
        cost = {what: float(f"{value:.3g}") for what, value in (cost | {"cache MiB": size}).items()}
        return measure("manyturn/WebShop-v0", {"data": str(data)}, repeats), cost


def show(columns: dict[str, dict[str, float]]) -> None:
    """Print the table; a figure above its limit is marked."""
    print(f"{'':<18}{'unit':<5}" + "".join(f"{name:>24}" for name in columns))
    for what, (unit, few, many) in ROWS.items():
        line = f"{what:<18}{unit:<5}"
        for name, medians in columns.items():
            limit = many if f"{MANY:,}" in name else few
            line += f"{medians[what]:>22.3g}" + (" !" if limit is not None and medians[what] > limit else "  ")
        print(line)
    print("! above the limit")


def main() -> None:
    parser = argparse.ArgumentParser(description="Speed and memory of the shops on one core.")
    parser.add_argument("data", type=Path, nargs="?", metavar="DIR", help="folder of WebShop's official files")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    about = origin(options.out, ("gymnasium", "numpy", "spacy"), dir=options.data)
    register_all()
    columns = {}
    if options.data:
        columns["official files"] = measure("manyturn/WebShop-v0", {"data": str(options.data)}, options.repeats)
    for size in (FEW, MANY):
        columns[f"made, {size:,}"] = measure("manyturn/Shop-v0", {"products": size}, options.repeats)
    columns[f"on disk, {MANY:,}"], cost = prepared(options.repeats)
    extrapolated = {what: float(f"{value * ALL / MANY:.3g}") for what, value in cost.items() if what != "peak MiB"}
    extrapolated["search ms"] = float(f"{columns[f'on disk, {MANY:,}']['search'] * ALL / MANY:.3g}")
    show(columns)
    print(f"preparing {MANY:,} products: {cost}")
    print(f"{ALL:,} products in proportion, not measured: {extrapolated}")
    limits = {what: {"unit": unit, f"{FEW:,}": few, f"{MANY:,}": many} for what, (unit, few, many) in ROWS.items()}
    record = {
        "repeats": options.repeats,
        "columns": columns,
        "limits": limits,
        "preparing": cost,
        "extrapolated, not measured": {"products": ALL, **extrapolated},
    }
    write(options.out, about, record)


if __name__ == "__main__":
    main()
