"""All items within one limit of seconds, each in a process of its own and with a budget of its own.

The items stand in the order of their worth. What one leaves of its budget, later ones may use; what the limit leaves no
room for has a row that says so.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.gpu_kit.cases import Session
from benchmarks.gpu_kit.measurement_log import Journal, Row
from benchmarks.kit.provenance import ROOT


@dataclass(frozen=True)
class Item:
    """A module of ``gpu_kit.items`` with its budget in seconds on an H100, the start of its process included."""

    name: str
    seconds: float


ITEMS = (
    Item("smoke", 135),
    Item("correctness", 65),
    Item("decoding", 65),
    Item("learner", 85),
    Item("household", 95),
    Item("memory", 50),
    Item("rollout", 40),
)
SECONDS = sum(item.seconds for item in ITEMS)  # 535: installing and starting take the rest of 560
_LEAST = 15.0  # seconds that an item is begun with
_GRACE = 5.0  # between the end of an item's time, at which it writes where it is, and the end of its process
_STARTS = 4  # processes of one item


def run(session: Session, items: Sequence[Item], limit: float) -> list[Row]:
    """Measure items; returns the rows of this session.

    Args:
        session: its item and its end are replaced.
        limit: seconds for all of them; budgets are scaled to it.
    """
    _take_earlier_rows(session)
    began, scale, saved = time.time(), limit / SECONDS, 0.0
    for item in items:
        now, budget = time.time(), scale * item.seconds + saved
        ends = min(now + budget, began + limit)
        if ends - now < min(_LEAST, scale * item.seconds):
            text = f"not begun: {max(ends - now, 0):.0f} s are left of {limit:.0f}"
            _note(session, item.name, "all cases", {"error": text})
            continue
        print(f"-- {item.name}: {ends - now:.0f} s", flush=True)
        _measure(replace(session, item=item.name, ends=ends))
        saved = max(budget - (time.time() - now), 0.0)
    return [row for row in Journal(session.journal).rows() if row["session"] == session.began]


def _take_earlier_rows(session: Session) -> None:
    """Begin with the rows that were brought along."""
    earlier = session.carried / "journal"
    session.journal.mkdir(parents=True, exist_ok=True)
    for name in ("rows.jsonl", "code.jsonl"):
        if (earlier / name).is_file() and not (session.journal / name).exists():
            shutil.copy(earlier / name, session.journal / name)


def _measure(session: Session) -> None:
    """An item, in as many processes as it takes."""
    for _ in range(_STARTS):
        code, errors = _process(session)
        if session.begun.is_file():
            case = session.begun.read_text()
            session.begun.unlink()
            what = "did not end in time" if session.late else f"its process ended with code {code}"
            _note(session, session.item, case, {"error": what, "traceback": errors})
        elif code and errors:
            _note(session, session.item, "all cases", {"error": f"ended with code {code}", "traceback": errors})
        if code == 0 or session.late:
            return


def _process(session: Session) -> tuple[int, str]:
    """One process: its exit code, and the end of what it said on standard error."""
    session.work.mkdir(parents=True, exist_ok=True)
    path = session.work / f"{session.item}.err"
    command = [sys.executable, str(ROOT / "benchmarks" / "gpu.py"), "item", session.plain()]
    with path.open("w") as errors, subprocess.Popen(command, stderr=errors, start_new_session=True) as process:
        try:
            process.wait(max(session.ends - time.time(), 0) + _GRACE)
        except subprocess.TimeoutExpired:
            pass
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    text = path.read_text(errors="replace")[-20000:]
    if process.returncode:
        print(text, file=sys.stderr, flush=True)
    return process.returncode, text


def _note(session: Session, item: str, case: str, content: dict[str, str]) -> None:
    """Write a row of what did not come to an end; it depends on no code, and counts for nothing but this session."""
    origin = {"device": "unknown", "driver": "unknown", "cuda": "unknown", "toy": session.toy}
    origin |= {"commit": session.commit}
    Journal(session.journal, origin | {"session": session.began, "versions": {}}).write(item, case, 0.0, [], content)
    print(f"{item} | {case} | {content['error']}", flush=True)


def items_called(names: Sequence[str]) -> list[Item]:
    """Items in the order of the schedule. Raises SystemExit for a name that is none."""
    if strange := set(names) - {item.name for item in ITEMS}:
        raise SystemExit(f"{', '.join(sorted(strange))}: take some of {', '.join(item.name for item in ITEMS)}")
    return [item for item in ITEMS if not names or item.name in names]


def default_work() -> Path:
    """A folder for what need not outlive the machine."""
    return Path(tempfile.gettempdir()) / "manyturn-gpu"
