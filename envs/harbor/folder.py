"""Reads the files of a task folder, which somebody else has made: no link is followed, and nothing is run."""

import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from manyturn.containers.inside.archive import FILE, ArchivedPath
from manyturn.envs.contract.registration.env_registry import NeedsSetup
from manyturn.envs.contract.tasks.task import SPLITS

Files = Mapping[str, ArchivedPath]

MOST_BYTES, _MOST_FILES = 256 << 20, 20_000
SETTINGS = "task.toml"


def read_files(folder: Path) -> dict[str, ArchivedPath]:
    """Path below the folder -> its file, in order. Raises NeedsSetup for a link, a device, or too much."""
    paths = dict[str, ArchivedPath]()
    left = MOST_BYTES
    for path in sorted(_walk(folder, folder)):
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            content = file.read(left + 1) if stat.S_ISREG(mode) else b""
        left -= len(content)
        if left < 0 or len(paths) >= _MOST_FILES:
            raise NeedsSetup(
                f"{folder} holds more than {_MOST_FILES} files or {MOST_BYTES >> 20} MiB: name a smaller one"
            )
        name = path.relative_to(folder).as_posix()
        paths[name] = ArchivedPath(name, FILE, content, bool(mode & 0o100))
    return paths


def below(files: Files, folder: str) -> dict[str, ArchivedPath]:
    """The files below a folder, with their paths from there."""
    start = f"{folder}/"
    cut = ((path.removeprefix(start), file) for path, file in files.items() if path.startswith(start))
    return {path: file._replace(path=path) for path, file in cut}


def text_of(files: Files, path: str) -> str:
    """A file as text. Raises NeedsSetup where it is missing, or no UTF-8."""
    try:
        return files[path].content.decode().replace("\r\n", "\n")
    except KeyError:
        raise NeedsSetup(f"there is no {path}") from None
    except UnicodeDecodeError as error:
        raise NeedsSetup(f"{path} is no UTF-8: {error}") from None


def task_folders(folder: Path) -> dict[str, dict[str, Path]]:
    """Split -> name of a task -> its folder. Harbor has no splits: what lies in no folder of a split's name is train.

    A folder with ``task.toml`` is a task; one that holds such folders is a data set; one that holds data sets has a
    split for each.
    """
    if not folder.is_dir():
        raise NeedsSetup(f"there is no folder {folder}")
    if (folder / SETTINGS).is_file():
        return {"train": {folder.resolve().name: folder}}
    if tasks := _tasks_in(folder):
        return {"train": tasks}
    splits = {one.name: tasks_there for one in sorted(_folders(folder), key=_rank) if (tasks_there := _tasks_in(one))}
    if not splits:
        raise NeedsSetup(f"{folder} is no task of Harbor, and holds none: a task's folder has a {SETTINGS}")
    return splits


def _tasks_in(folder: Path) -> dict[str, Path]:
    return {one.name: one for one in _folders(folder) if (one / SETTINGS).is_file()}


def _rank(folder: Path) -> int:
    """The place of a split: ours in their order, others after them."""
    return SPLITS.index(folder.name) if folder.name in SPLITS else len(SPLITS)


def _folders(folder: Path) -> list[Path]:
    return sorted(one for one in folder.iterdir() if one.is_dir() and not one.is_symlink())


def _walk(folder: Path, top: Path) -> Iterator[Path]:
    for item in os.scandir(folder):
        path = Path(item.path)
        if item.is_dir(follow_symlinks=False):
            yield from _walk(path, top)
        elif item.is_file(follow_symlinks=False):
            yield path
        else:
            kind = f"a link to {os.readlink(path)}" if item.is_symlink() else "no file"
            raise NeedsSetup(f"{path.relative_to(top)} is {kind}: put a file in its place")
