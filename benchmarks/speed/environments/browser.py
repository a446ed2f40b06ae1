"""Speed of the environments in a browser: start, reset, action, observation; half a minute.

    python -m benchmarks.speed.environments.browser

A figure is the median of wall milliseconds, with one episode at a time. Chromium's processes work beside this one, so
CPU time of this process would say little; the load of the machine stands beside the figures.
"""

import argparse
import os
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from benchmarks.kit.provenance import RESULTS, origin, write
from manyturn.envs.benchmarks.miniwob import MiniWoB
from manyturn.envs.shop.browser.pages_env import ShopPages
from manyturn.envs.web.browser import the_browser

OUT = RESULTS / "browser_speed.json"
# What is measured, and what was measured of BrowserGym.
ROWS = (
    "launch, once",
    "shop: reset",
    "shop: click",
    "shop: type",
    "shop: go back",
    "shop: observation alone",
    "shop: restore",
    "MiniWoB: reset",
    "MiniWoB: click",
)
Times = defaultdict[str, list[float]]


@contextmanager
def timed(times: Times, name: str) -> Iterator[None]:
    """Note how long what is inside takes."""
    start = time.perf_counter()
    yield
    times[name].append(1e3 * (time.perf_counter() - start))


def launches(times: Times, count: int) -> None:
    """A browser, and its end, which is not timed."""
    for _ in range(count):
        with timed(times, "launch, once"):
            browser = the_browser()
        browser.stop()


def shop(times: Times, episodes: int) -> None:
    """The expert's episodes, with a look back and a return from a snapshot in each."""
    env = ShopPages(difficulty="medium")
    for number in range(episodes):
        _play(times, env, env.tasks("train")[number].id)
    env.close()


def _play(times: Times, env: ShopPages, task: str) -> None:
    with timed(times, "shop: reset"):
        env.reset(seed=0, options={"task": task})
    ended = looked = False
    while not ended:
        action = env.expert()
        if not looked and "back" in env.admissible() and action.startswith("click"):
            looked = True
            with timed(times, "shop: observation alone"):
                env._reader.look()
            with timed(times, "shop: go back"):
                env.step("back")
            data = env.snapshot()
            with timed(times, "shop: restore"):
                env.restore(data)
            action = env.expert()
        with timed(times, f"shop: {action.partition('[')[0]}"):
            *_, terminated, truncated, _ = env.step(action)
        ended = terminated or truncated


def miniwob(times: Times, episodes: int) -> None:
    """One click in each episode."""
    env = MiniWoB(tasks=["click-button"])
    for number in range(episodes):
        with timed(times, "MiniWoB: reset"):
            env.reset(seed=0, options={"task": f"train/click-button/{number}"})
        click = next(action for action in env.admissible() if action.startswith("click"))
        with timed(times, "MiniWoB: click"):
            env.step(click)
    env.close()


def main() -> None:
    parser = argparse.ArgumentParser(description="Speed of the environments in a browser.")
    parser.add_argument("--repeats", type=int, default=20, help="episodes of each environment")
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    about = origin(options.out, ("gymnasium", "playwright", "miniwob"))
    times: Times = defaultdict(list)
    load = os.getloadavg()[0]
    launches(times, 5)
    shop(times, options.repeats)
    miniwob(times, options.repeats)
    rows = []
    print(f"{'wall ms':<28}{'median':>10}")
    for name in ROWS:
        value = float(f"{median(times[name]):.3g}")
        rows.append({"what": name, "ms": value, "calls": len(times[name])})
        print(f"{name:<28}{value:>10}")
    write(options.out, about, {"load": round(load, 2), "repeats": options.repeats, "rows": rows})


if __name__ == "__main__":
    main()
