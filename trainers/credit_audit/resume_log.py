"""The journal of an audit: finished tasks of each pass, so that an audit that was interrupted goes on."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from manyturn.envs.contract.atomic_files import replace_text
from manyturn.envs.contract.random_keys import digest
from manyturn.trainers.credit_audit.group_episodes import PlayedTask

_ABOUT = "audit.json"


class AuditJournal:
    """Keeps the tasks of each pass in files of a folder.

    Args:
        folder: None keeps nothing.
    """

    def __init__(self, folder: Path | None):
        self._folder = None if folder is None else folder / "journal"

    def read(self, number: int, name: str) -> PlayedTask | None:
        """A task as that pass left it; None where it did not."""
        if self._folder is None or not (file := self._file(number, name)).is_file():
            return None
        return PlayedTask.of_plain(json.loads(file.read_text(encoding="utf-8")))

    def write(self, number: int, task: PlayedTask) -> None:
        """Keep a task; what the pass before kept of it is not needed any more."""
        if self._folder is None:
            return
        file = self._file(number, task.task)
        file.parent.mkdir(parents=True, exist_ok=True)
        replace_text(file, json.dumps(task.plain(), separators=(",", ":")))

    def _file(self, number: int, name: str) -> Path:
        assert self._folder is not None
        return self._folder / str(number) / f"{digest(name)[:16]}.json"


def claimed(folder: Path) -> Mapping[str, Any] | None:
    """Environment, policy and options of the audit in a folder; None where there is none."""
    file = folder / _ABOUT
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else None


def claim(folder: Path, about: Mapping[str, Any]) -> None:
    """Take a folder for an audit, or go on with the one that is in it.

    Args:
        about: what makes the audit what it is: environment, policy, options.

    Raises:
        ValueError: another audit is in it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / _ABOUT
    mine = json.loads(json.dumps(about))
    if (other := claimed(folder)) is not None:
        odd = [name for name in {**other, **mine} if other.get(name) != mine.get(name)]
        if odd:
            raise ValueError(f"{folder} holds an audit with another {odd[0]}: name another folder with --out")
        return
    if any(folder.iterdir()):
        raise ValueError(f"{folder} is not empty, and holds no audit: name another folder with --out")
    replace_text(file, json.dumps(mine, indent=1) + "\n")
