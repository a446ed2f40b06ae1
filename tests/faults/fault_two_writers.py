"""A second process wants the folder of a run that is going on: it is refused, and the first is not disturbed."""

import sys
import time
from pathlib import Path

from short_runs import ended, figures, finish, left_behind, start, work_on
from tally import Tally

from manyturn.trainers.record.run_folder import RunFolder, RunFolderError

SHORT, LONG = 2, 6
_REFUSED = 7


def run(count: int, seed: int, folder: Path) -> Tally:
    finish(folder / "calm")
    path = folder / "shared"
    first = start(lambda: work_on(path))
    while not (path / "config.toml").exists():
        time.sleep(0.005)
    refused = sum(ended(start(lambda: _second(path))) == _REFUSED for _ in range(count))
    status = ended(first)
    equal = status == 0 and figures(path) == figures(folder / "calm")
    notes = [] if equal else [f"the first writer ended with status {status} or other figures"]
    return Tally(injected=count, survived=refused if equal else 0, orphans=len(left_behind(path)), notes=notes)


def _second(path: Path) -> None:
    try:
        with RunFolder(path, resume=True):
            sys.exit(1)
    except RunFolderError as error:
        sys.exit(_REFUSED if "being written by another process" in str(error) else 1)
