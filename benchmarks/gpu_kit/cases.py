"""The cases of an item, measured one after the other in a process of their own.

A case that fails is a row with its traceback, and the next one is begun. What a GPU cannot recover from, such as an
access outside of its memory, ends the process: every later case would fail for the same reason. ``schedule.py`` then
starts another process for the rest.
"""

import faulthandler
import importlib
import json
import platform
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.gpu_kit.measurement_log import Dependencies, Figures, Journal, Row
from benchmarks.kit.provenance import versions

if TYPE_CHECKING:
    from benchmarks.gpu_kit.device import Device

PACKAGES = ("torch", "transformers", "peft", "triton", "numpy")
NOT_BEGUN = "not begun: the item's time was over"
BROKEN = 3  # exit code of a process after which the device needs another one


@dataclass(frozen=True)
class Case:
    """One thing to measure.

    Attributes:
        name: unlike any other of its item.
        measure: returns its figures. An entry "ok" says whether they keep the bounds that are stated with them.
    """

    name: str
    measure: Callable[[], Figures]


@dataclass(frozen=True)
class Kit:
    """Context of an item.

    Attributes:
        toy: sizes that show that it runs.
        carried: the folder of what was computed beforehand.
        work: a folder for what is too large for the journal.
    """

    device: "Device"
    toy: bool
    carried: Path
    work: Path


@dataclass(frozen=True)
class Session:
    """Start of an item's process.

    Attributes:
        item: a module of ``gpu_kit.items``.
        commit: of the code; the schedule asks for it, since whoever asks opens every file.
        began: when the schedule began, in seconds since 1970; rows of a session are not made twice in it.
        ends: when the item's time is over.
    """

    item: str
    journal: Path
    carried: Path
    work: Path
    device: str
    toy: bool
    commit: str
    began: float
    ends: float

    def plain(self) -> str:
        """As JSON, for another process."""
        return json.dumps({name: str(v) if isinstance(v, Path) else v for name, v in vars(self).items()})

    @classmethod
    def of(cls, text: str) -> "Session":
        """The inverse of ``plain``."""
        fields = json.loads(text)
        return cls(**{name: Path(v) if cls.__annotations__[name] is Path else v for name, v in fields.items()})

    @property
    def begun(self) -> Path:
        """The file with the name of the case that is being measured."""
        return self.work / f"{self.item}.begun"

    @property
    def late(self) -> bool:
        """True if the item's time is over."""
        return time.time() > self.ends


class Writer:
    """Writes the rows of an item's cases."""

    def __init__(self, session: Session, device: "Device", dependencies: Dependencies):
        self.session, self.device, self._dependencies = session, device, dependencies
        origin = {"device": device.facts()["device"], "driver": device.facts()["driver"], "toy": session.toy}
        origin |= {"cuda": device.facts()["cuda"], "commit": session.commit, "session": session.began}
        self.journal = Journal(session.journal, origin | {"versions": versions(PACKAGES)})

    def done(self) -> set[str]:
        """The cases that need no measuring: current ones, and those that this session has tried."""
        name, item = self.device.facts()["device"], self.session.item
        rows = [row for row in self.journal.current() if (row["device"], row["toy"]) == (name, self.session.toy)]
        done = [row for row in rows if "error" not in row]
        tried = [row for row in self.journal.rows() if row["session"] == self.session.began]
        return {row["case"] for row in [*done, *tried] if row["item"] == item}

    def begin(self, case: str) -> float:
        """Note which case begins; returns the time of it."""
        self.session.begun.write_text(case)
        return time.monotonic()

    def end(self, case: str, began: float, content: Figures) -> Row:
        """Write the row of a case."""
        seconds = time.monotonic() - began
        row = self.journal.write(self.session.item, case, seconds, self._dependencies.files(), content)
        self.session.begun.unlink(missing_ok=True)
        shown = {name: value for name, value in content.items() if name != "traceback"}
        print(f"{self.session.item} | {case} | {row['seconds']} s | {json.dumps(shown)}", flush=True)
        print(content.get("traceback", ""), end="", flush=True)
        return row


def failure(error: BaseException) -> Figures:
    """The content of a row of a case that failed."""
    text = "".join(traceback.format_exception(error))
    return {"error": f"{type(error).__name__}: {' '.join(str(error).split())[:300]}", "traceback": text}


def run_item(text: str, dependencies: Dependencies) -> int:
    """Measure an item's cases until its time is over; returns the process's exit code.

    Args:
        text: a session, as ``Session.plain`` gives it.
    """
    import torch

    from benchmarks.gpu_kit.device import Device

    session = Session.of(text)
    session.work.mkdir(parents=True, exist_ok=True)
    faulthandler.enable()
    # Where the process hangs in a kernel, nothing else would say where.
    faulthandler.dump_traceback_later(max(session.ends - time.time(), 1), file=sys.stderr)
    device = Device(session.device)
    if not device.on_gpu:
        torch.set_num_threads(1)
    writer = Writer(session, device, dependencies)
    _describe(session.journal / "machine.txt")
    module = importlib.import_module(f"benchmarks.gpu_kit.items.{session.item}")
    if hasattr(module, "run"):
        return module.run(writer)
    kit, done = Kit(device, session.toy, session.carried, session.work), writer.done()
    return measure([case for case in module.cases(kit) if case.name not in done], writer)


def measure(cases: Sequence[Case], writer: Writer) -> int:
    """Measure cases in turn."""
    for case in cases:
        began = writer.begin(case.name)
        if writer.session.late:
            writer.end(case.name, began, {"error": NOT_BEGUN})
            continue
        try:
            content: Figures = {"figures": dict(case.measure())}
        except Exception as error:
            content = failure(error)
        writer.end(case.name, began, content)
        if not writer.device.works():
            return BROKEN
        writer.device.clear()
    return 0


def _describe(path: Path) -> None:
    """Write what the machine is and has, once."""
    if path.is_file():
        return
    import torch

    packages = sorted(f"{package.name}=={package.version}" for package in distributions())
    parts = [platform.platform(), *_gpu_report(), torch.__config__.show(), *packages]
    path.write_text("\n".join(parts) + "\n")


def _gpu_report() -> Iterator[str]:
    for words in (["nvidia-smi"], ["nvidia-smi", "-q", "-d", "CLOCK,POWER,PERFORMANCE,MEMORY"]):
        try:
            yield subprocess.run(words, capture_output=True, text=True, check=False, timeout=20).stdout
        except (OSError, subprocess.SubprocessError) as error:
            yield f"{' '.join(words)}: {error}"
