"""Folders that are either complete or not there."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from manyturn.agents.trajectories.trajectory import TrajectoryError


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """A folder to fill, which takes its name when it is complete.

    Raises:
        TrajectoryError: there is something of that name already.
    """
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise TrajectoryError(f"{path} is there already: name another folder with --out")
    aside = path.with_name(f".{path.name}.{os.getpid()}.writing")
    aside.mkdir(parents=True)
    try:
        yield aside
        if path.exists():
            path.rmdir()
        aside.rename(path)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
