"""AppWorld's data on disk: which tasks there are, in the lists that it was published with. Nothing of it is kept."""

import json
import re
from collections.abc import Mapping
from pathlib import Path

from manyturn.envs.contract.registration.env_registry import NeedsSetup
from manyturn.envs.contract.tasks.task import Task

LISTS = {"train": "train", "validation": "dev", "test": "test_normal", "test_challenge": "test_challenge"}
"""Split -> AppWorld's name of it."""
SETUP = (
    '"python3.11 -m venv appworld && appworld/bin/pip install appworld", "appworld/bin/appworld install" and '
    '"appworld/bin/appworld download data --root FOLDER" set it up; then give python="appworld/bin/python" and '
    'root="FOLDER"'
)
_ID = re.compile(r"(\w{1,64})_\d{1,4}", re.ASCII)  # it becomes part of paths


class Data:
    """The folder that ``appworld download data`` fills.

    A task's content is its id: instruction, state and tests stay in AppWorld's files, which are not to be passed on as
    plain text. Its tag is the scenario, of which AppWorld counts whether all tasks are done; its difficulty 1, 2 or 3.

    Args:
        root: the folder that holds ``data``; ``~`` is the home folder.

    Attributes:
        folder: the folder ``data``.
        tasks: split -> tasks, in the order of AppWorld's list.
        absent: split -> why it is not there.

    Raises:
        NeedsSetup: there is no such folder, or no list in it, or one that cannot be read.
    """

    def __init__(self, root: str | Path):
        self.folder = Path(root).expanduser().resolve() / "data"
        if not (self.folder / "tasks").is_dir():
            raise NeedsSetup(f"{self.folder} holds no tasks of AppWorld: {SETUP}")
        lists = {split: self.folder / "datasets" / f"{name}.txt" for split, name in LISTS.items()}
        self.absent: Mapping[str, str] = {
            split: f"there is no {file}: {SETUP}" for split, file in lists.items() if not file.is_file()
        }
        self.tasks = {
            split: () if split in self.absent else tuple(self._task(split, line) for line in _lines(file))
            for split, file in lists.items()
        }
        if not any(self.tasks.values()):
            raise NeedsSetup(f"{self.folder / 'datasets'} lists no tasks: {SETUP}")

    def _task(self, split: str, line: str) -> Task:
        name = line.partition(":")[0].strip()  # a tag may follow
        match = _ID.fullmatch(name)
        if not match:
            raise NeedsSetup(f"{self.folder / 'datasets'} lists {name!r:.80}, which is no task's id: {SETUP}")
        return Task(name, split, {"task": name}, difficulty=self._difficulty(name), tags=(match[1],))

    def _difficulty(self, name: str) -> str | None:
        try:
            about = json.loads((self.folder / "tasks" / name / "ground_truth" / "metadata.json").read_bytes())
            return str(int(about["difficulty"]))
        except (OSError, ValueError, LookupError, TypeError):
            return None  # it decides nothing


def _lines(file: Path) -> list[str]:
    try:
        return [line for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise NeedsSetup(f"{file} cannot be read ({error}): {SETUP}") from None
