"""Exported environment: its name, its arguments, and a panel of tasks for each split."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Self

from manyturn.envs.contract.random_keys import seed_of
from manyturn.envs.contract.registration.env_registry import check_installed, is_file
from manyturn.envs.contract.tasks.panel import Panel, PanelError
from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.hosting.handle.env_handle import EnvHandle

WORLD, PANEL = "world.json", ".panel.json"


@dataclass(frozen=True)
class Exported:
    """An environment as a folder has it.

    Attributes:
        folder: where it lies.
        env: id, or ``FILE.py:Class`` with the file in the folder.
        args: of its constructor.
        wrappers: turn-level rewards around it, as plain values.
    """

    folder: Path
    env: str
    args: Mapping[str, Any]
    wrappers: Sequence[Any]

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Load an exported folder. Raises OSError, ValueError if it is no export, or UnknownEnv."""
        try:
            plain = json.loads((folder / WORLD).read_text(encoding="utf-8"))
            exported = cls(folder, plain["env"], plain["args"], plain["wrappers"])
            package = plain.get("package")
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{folder / WORLD} is not what manyturn export wrote: {error}") from error
        check_installed(exported.env, package)
        return exported

    @property
    def name(self) -> str:
        """The environment's name on this machine."""
        return str(self.folder / self.env) if is_file(self.env) else self.env

    @property
    def splits(self) -> list[str]:
        return sorted(path.name.removesuffix(PANEL) for path in self.folder.glob(f"*{PANEL}"))

    @cached_property
    def instructions(self) -> str:
        """Instructions that the agent reads once."""
        handle = EnvHandle(self.name, self.args)
        try:
            return handle.instructions
        finally:
            handle.close()

    def tasks(self, split: str) -> list[Task]:
        """The tasks of a split as they were exported. Raises PanelError if one has changed since."""
        if split not in self.splits:
            raise PanelError(f"{self.folder} has no split {split!r}; it has {', '.join(self.splits)}")
        panel = Panel.from_json((self.folder / f"{split}{PANEL}").read_text(encoding="utf-8"))
        handle = EnvHandle(self.name, self.args)
        try:
            return panel.find(handle.tasks(split))
        finally:
            handle.close()


def task_of(folder: Path, row: Mapping[str, Any]) -> Task:
    """The task of a row of ``data/``. Raises PanelError if it is another one than when it was exported."""
    if missing := {"task", "split", "content", "seed"} - row.keys():
        raise ValueError(f"the row lacks {', '.join(sorted(missing))}: take the rows of data/ as they are")
    task = _tasks(folder, row["split"]).get(row["task"])
    if task is None or task.content != row["content"]:
        raise PanelError(f"task {row['task']} of split {row['split']} is none of this export: take its own data/")
    return task


@cache
def _tasks(folder: Path, split: str) -> dict[str, Task]:
    """Id -> task of a split, read once in each process."""
    return {task.id: task for task in Exported.read(folder).tasks(split)}


def episode_seed(task: Task) -> int:
    """Seed of the episodes of a task, so that all attempts meet the same world."""
    return seed_of("exported", task.id) >> 32
