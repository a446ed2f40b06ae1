"""Recognition of a file's format, and files of lines."""

import json
from collections.abc import Iterable
from pathlib import Path

from manyturn.agents.trajectories.formats import atif, chat, hub, inspect_logs, openenv_trace
from manyturn.agents.trajectories.reader import IMPORTED, read_lines
from manyturn.agents.trajectories.trajectory import Trajectory, TrajectoryError
from manyturn.envs.contract.atomic_files import replace_file
from manyturn.envs.contract.credential_mask import masked


def read_any(path: Path) -> list[Trajectory]:
    """The trajectories of a file or folder in a format that is known. Raises TrajectoryError."""
    if not path.exists():
        raise TrajectoryError(f"there is no {path}: name a file or a folder of trajectories")
    if path.is_dir():
        return _of_folder(path)
    if path.name == IMPORTED:
        return list(read_lines(path))
    if path.suffix == ".eval":
        raise TrajectoryError(f"{path} is packed: inspect log convert --to json {path} --output-dir FOLDER unpacks it")
    if path.suffix == ".jsonl":
        return openenv_trace.read(path) if openenv_trace.is_trace(path) else chat.read_chat(path)
    if path.suffix == ".json":
        return _of_document(path)
    raise TrajectoryError(
        f"{path} is in no format that is known: name ATIF or a log of Inspect, .json, or chat, .jsonl"
    )


def _of_folder(path: Path) -> list[Trajectory]:
    if (path / IMPORTED).is_file():
        return list(read_lines(path / IMPORTED))
    if (path / hub.DATA).is_dir():
        return hub.read(path)
    files = sorted(path.glob("*.json"))
    if not files:
        raise TrajectoryError(
            f"{path} holds no trajectories: it has no .json of ATIF or Inspect, {hub.DATA} or {IMPORTED}"
        )
    return [trajectory for file in files for trajectory in _of_document(file)]


def _of_document(path: Path) -> list[Trajectory]:
    plain = _json(path)
    return inspect_logs.of_log(plain, path.name) if "eval" in plain else [atif.of_document(plain, path.name)]


def _json(path: Path) -> dict:
    try:
        plain = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise TrajectoryError(f"{path} is no JSON ({error}): make it again") from None
    if not isinstance(plain, dict):
        raise TrajectoryError(f"{path} holds no trajectory, which is a JSON object: make it again")
    return plain


def write_text_lines(path: Path, lines: Iterable[str]) -> int:
    """Write lines to a file, completely or not at all; returns how many. Without any, nothing is written."""
    count = 0

    def write(aside: Path) -> None:
        nonlocal count
        with aside.open("w", encoding="utf-8") as file:
            for line in lines:
                file.write(masked(line) + "\n")
                count += 1
        if not count:
            raise TrajectoryError("there is nothing to write: no episode has what this format holds")

    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, write)
    return count
