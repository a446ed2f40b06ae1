"""The pictures of a live run and of a report that docs/reports.md shows, as a browser draws them.

    python -m benchmarks.runs.docs_screenshots                              five to ten minutes; needs a Chromium
    python -m benchmarks.runs.docs_screenshots --out FOLDER steps=4        elsewhere, and of another run

A run of the recipe quickstart, made shorter, is viewed while it goes on, and reported when it has ended.
"""

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from playwright.sync_api import sync_playwright

from benchmarks.kit.provenance import ROOT
from manyturn.envs.web.chromium import launch_options
from manyturn.report.document import document_of
from manyturn.report.report_file import write_report
from manyturn.report.report_server import View

PICTURES = ROOT / "docs" / "pictures"
SHORTER = {"steps": "12", "warmup.episodes": "1500", "warmup.max_updates": "300", "evaluation.limit": "60"}
SIZE = {"width": 1200, "height": 750}


def lines(run: Path) -> int:
    """Number of steps of reinforcement learning that a run has recorded."""
    file = run / "metrics.jsonl"
    recorded = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return sum(json.loads(line).get("phase") == "train" for line in recorded if line.endswith("}"))


@contextmanager
def viewed(run: Path) -> Iterator[str]:
    """The address at which a run can be seen."""
    view = View(run)
    thread = threading.Thread(target=view.run)
    thread.start()
    try:
        yield view.url
    finally:
        view.stop()
        thread.join()


def telling(run: Path) -> str:
    """The address of the longest of the last step's episodes that succeeded, at a turn in its middle."""
    document = document_of(run).plain
    episodes = document["episodes"]
    places = [i for i, stage in enumerate(episodes["stage"]) if stage.startswith("train/")]
    step = {i: int(episodes["stage"][i].removeprefix("train/")) for i in places}
    last = max(places, key=lambda i: (step[i], bool(episodes["success"][i]), episodes["turns"][i]))
    source = document["sources"][episodes["source"][last]]
    name = (source, episodes["stage"][last], episodes["task"][last], str(episodes["member"][last]))
    return f"#e={'/'.join(quote(part, safe='') for part in name)}&t={episodes['turns'][last] // 2 + 1}"


def save(page: Any, out: Path) -> None:
    """Write what a page shows to a PNG."""
    page.mouse.move(0, 0)
    page.screenshot(path=out, animations="disabled")


def live(browser: Any, run: Path, training: subprocess.Popen[bytes], after: int, out: Path) -> None:
    """Draw a run that goes on once it has made some steps; it waits while it is drawn."""
    while lines(run) < after:
        if training.poll() is not None:
            raise SystemExit(f"the run ended before its step {after}: it says above why")
        time.sleep(0.1)
    training.send_signal(signal.SIGSTOP)
    try:
        with viewed(run) as address:
            page = browser.new_page(viewport=SIZE)
            page.goto(address)
            page.wait_for_selector("#overview svg")
            save(page, out)
            page.close()
    finally:
        training.send_signal(signal.SIGCONT)


def report(browser: Any, run: Path, out: Path) -> None:
    """Draw an episode of a run's report."""
    page = browser.new_page(viewport=SIZE)
    page.goto(write_report(run).as_uri() + telling(run))
    page.wait_for_selector("#trace .turn-head")
    page.wait_for_selector("#trace .group")  # the other attempts at the task come last
    save(page, out)
    page.close()


def draw(browser: Any, options: Sequence[str], out: Path) -> None:
    """Train, and draw both pictures into a folder."""
    settings = {**SHORTER, **dict(option.split("=", 1) for option in options)}
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "maze"
        command = [sys.executable, "-m", "manyturn", "train", "--recipe", "quickstart", "--out", str(run)]
        command += [word for name, value in settings.items() for word in (f"--{name}", value)]
        training = subprocess.Popen(command)
        try:
            live(browser, run, training, max(1, int(settings["steps"]) * 3 // 4), out / "live.png")
            if training.wait():
                raise SystemExit("the run failed: it says above why")
        finally:
            training.kill()
        report(browser, run, out / "report.png")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=PICTURES, help="the folder that the pictures go to")
    parser.add_argument("options", nargs="*", metavar="NAME=VALUE", help="other options of the run")
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(**launch_options())
        draw(browser, chosen.options, chosen.out)
        browser.close()
    for file in sorted(chosen.out.glob("*.png")):
        print(f"{file}: {file.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
