"""What the kit measures, item by item: each is written down as soon as it is known, and is not measured twice.

A part has a limit of minutes. An item that would not end within what is left is not begun; the next call goes on with
it. One that fails is a row too, which says how, and the next call tries it again.
"""

import json
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gpu_device import Device

from benchmarks.kit.provenance import commit, versions

PACKAGES = ("torch", "transformers", "peft", "vllm")
Figures = Mapping[str, Any]


@dataclass(frozen=True)
class Item:
    """One thing to measure.

    Attributes:
        name: unlike any other of its part.
        seconds: that it takes on an H100 at most.
        measure: returns its figures. An entry "ok" says whether they keep the bounds that are stated with them.
    """

    name: str
    seconds: float
    measure: Callable[[], Figures]


@dataclass(frozen=True)
class Kit:
    """What a part is told.

    Attributes:
        toy: sizes that show that it runs.
        work: a folder for what is too large for the journal; it need not outlive the machine.
        model: a folder of SmolLM2, or its GGUF file, for the part that needs weights.
    """

    device: Device
    toy: bool
    work: Path
    model: Path | None = None


class TooLong(BaseException):
    """An item did not end; no handler of errors in between may take it for one of its own."""


class Journal:
    """The rows of a part, one line each, in a folder that may travel between machines.

    Args:
        origin: what all rows of one table share; rows of another do not count.
    """

    def __init__(self, folder: Path, part: str, origin: Mapping[str, Any]):
        self._path, self._part, self.origin = folder / f"{part}.jsonl", part, dict(origin)
        folder.mkdir(parents=True, exist_ok=True)
        if self._path.is_file():  # what is written next must not hang on a line that was cut off
            whole, ends, _ = self._path.read_text().rpartition("\n")
            self._path.write_text(whole + ends)

    def done(self) -> set[str]:
        """The items that need no measuring."""
        rows = [row for row in read(self._path) if all(row[name] == value for name, value in self.origin.items())]
        return {row["item"] for row in rows if "error" not in row["figures"]}

    def write(self, item: str, seconds: float, figures: Figures) -> dict[str, Any]:
        """Keep what was found of an item."""
        today = datetime.now(UTC).strftime("%Y-%m-%d")
        row = {"part": self._part, "item": item, **self.origin, "date": today}
        row |= {"seconds": round(seconds, 1), "figures": dict(figures)}
        with self._path.open("a") as file:
            file.write(json.dumps(row) + "\n")
            file.flush()
            os.fsync(file.fileno())
        return row


def read(path: Path) -> list[dict[str, Any]]:
    """The rows of a journal; a last line that was cut off is none."""
    lines = path.read_text().split("\n") if path.is_file() else []
    return [json.loads(line) for line in lines[:-1]]


def origin(device: Device, toy: bool) -> dict[str, Any]:
    """Where figures are from: device, driver, versions and commit."""
    return {"commit": commit(), "toy": toy, **device.facts(), "versions": versions(PACKAGES)}


def run(items: Sequence[Item], journal: Journal, device: Device, minutes: float, patience: float = 1.5) -> list[str]:
    """Measure what is not known yet; returns the names of what is left for another call.

    Args:
        minutes: for all of it.
        patience: times its own limit after which an item is given up.
    """
    ends, done, left = time.monotonic() + 60 * minutes, journal.done(), list[str]()
    for item in items:
        if item.name in done:
            print(f"{item.name}: known", flush=True)
        elif time.monotonic() + item.seconds > ends:
            left.append(item.name)
        else:
            began = time.monotonic()
            figures = _measured(item, min(patience * item.seconds, ends - began))
            row = journal.write(item.name, time.monotonic() - began, figures)
            print(f"{item.name}: {row['seconds']} s  {json.dumps(row['figures'])}", flush=True)
            device.clear()
    return left


def _measured(item: Item, seconds: float) -> Figures:
    try:
        with _limit(seconds):
            return item.measure()
    except TooLong:
        return {"error": f"did not end within {seconds:.0f} s"}
    except Exception as error:  # one item that fails must not take the rest of the half hour with it
        text = " ".join(str(error).split())
        return {"error": f"{type(error).__name__}: {text[:500]}"}


@contextmanager
def _limit(seconds: float) -> Iterator[None]:
    def late(number: int, frame: object) -> None:
        raise TooLong

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
