"""Panels: fixed lists of tasks on which results are reported, pinned by a hash so that two results can be compared."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from manyturn.envs.contract.atomic_files import replace_text
from manyturn.envs.contract.random_keys import digest
from manyturn.envs.contract.tasks.env_identity import KEY, EnvIdentity, differences, listed
from manyturn.envs.contract.tasks.task import Task, task_finder

_VERSION = 1


class PanelError(ValueError):
    """The panel cannot be made, or is not what it says; the text says what would fix it."""


@dataclass(frozen=True)
class Panel:
    """A fixed list of N different problems.

    Attributes:
        env: the environment's id, or ``FILE.py:Class``.
        split: the split that the tasks belong to.
        tasks: N task ids, in order.
        contents: N hashes, ``Task.content`` of each.
        args: arguments of the environment's constructor that the ids belong to.
        env_identity: of the environment that listed them, without wrappers; None where it is unknown. It is not in the
            hash: the contents say that the tasks are the same.
        package: the package outside of this project that registers the environment, as a requirement.
        failed_by: names of the policies that failed at the tasks, where that is why they were chosen.
    """

    env: str
    split: str
    tasks: tuple[str, ...]
    contents: tuple[str, ...]
    args: Mapping[str, Any] = field(default_factory=dict)
    env_identity: EnvIdentity | None = field(default=None, compare=False)
    package: str | None = field(default=None, compare=False)
    failed_by: tuple[str, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        if not self.tasks or len(self.tasks) != len(self.contents):
            raise PanelError(f"a panel is a list of tasks and their hashes: {len(self.tasks)}, {len(self.contents)}")
        for what, values in (("id", self.tasks), ("content", self.contents)):
            if len(set(values)) < len(values):
                twice = next(v for i, v in enumerate(values) if v in values[:i])
                raise PanelError(f"the tasks of a panel are different problems, but the {what} {twice!r} comes twice")

    def __len__(self) -> int:
        return len(self.tasks)

    @property
    def id(self) -> str:
        """A readable name, such as ``manyturn/Maze-v0/test/128``. Only the hash says that two panels are one."""
        return f"{portable_name(self.env)}/{self.split}/{len(self)}"

    @cached_property
    def hash(self) -> str:
        """Hash of the environment's name, the ids and the contents: the same on every machine.

        The arguments are not in it: they name folders of one machine, and what they make of a problem is in its
        content. A file has a hash of its own for them.
        """
        return digest("panel", portable_name(self.env), self.tasks, self.contents)

    def find(self, tasks: Sequence[Task]) -> list[Task]:
        """The panel's N tasks, taken from an environment's tasks of the split; raises PanelError if they changed."""
        find = task_finder(tasks)
        chosen = []
        for task_id, content in zip(self.tasks, self.contents, strict=True):
            task = find(task_id)
            if task is None or task.content != content:
                problem = "does not exist" if task is None else "is another problem than when the panel was made"
                raise PanelError(
                    f"{self.id}: task {task_id!r} {problem}. Use the version of {self.env} and the arguments "
                    f"{dict(self.args)} that the panel was made with, or make a new panel; results on it cannot be "
                    "compared with those on this one"
                )
            chosen.append(task)
        return chosen

    def remark_on(self, now: EnvIdentity) -> str | None:
        """A line on an environment that has changed since it listed the panel's tasks; None if it has not.

        Args:
            now: of the environment that they are played in.
        """
        if self.env_identity is None or not (changes := differences(self.env_identity, now.bare)):
            return None
        return f"{self.id} was made with another environment ({listed(changes)}); its tasks are the same"

    @property
    def facts(self) -> dict[str, Any]:
        """The panel in summaries: id, hash, number of tasks, and the policies that failed at them if there are some."""
        failed = {"failed_by": list(self.failed_by)} if self.failed_by else {}
        return {"id": self.id, "hash": self.hash, "n_tasks": len(self), **failed}

    def to_json(self) -> str:
        """The panel as text; ``from_json`` undoes it."""
        head = {"schema_version": _VERSION, "id": self.id, "hash": self.hash, "env": self.env, "args": dict(self.args)}
        if self.args:
            head["args_hash"] = _of_args(self.args)
        if self.env_identity is not None:
            head[KEY] = self.env_identity.plain()
        if self.package is not None:
            head["package"] = self.package
        if self.failed_by:
            head["failed_by"] = list(self.failed_by)
        pairs = list(zip(self.tasks, self.contents, strict=True))
        return json.dumps({**head, "split": self.split, "tasks": pairs}, indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Raises PanelError if the text is no panel, or its hash does not fit its tasks."""
        try:
            plain = json.loads(text)
            version, digest, args_known = plain["schema_version"], plain["hash"], plain.get("args_hash")
            ids, contents = zip(*plain["tasks"], strict=True)
            facts = {"env_identity": EnvIdentity.of(plain), "package": plain.get("package")}
            facts["failed_by"] = tuple(map(str, plain.get("failed_by", ())))
            panel = cls(plain["env"], plain["split"], ids, contents, plain["args"], **facts)
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, PanelError):
                raise
            raise PanelError(f"this is not a panel: {type(error).__name__}: {error}") from error
        if version != _VERSION:
            raise PanelError(f"the panel has schema version {version}, this manyturn reads {_VERSION}")
        if panel.hash != digest:
            raise PanelError(
                f"{panel.id}: the tasks give the hash {panel.hash}, the file says {digest}: it was edited. "
                "Take the file from where it was made, or make a new panel"
            )
        if args_known is not None and _of_args(panel.args) != args_known:
            raise PanelError(
                f"{panel.id}: the arguments {dict(panel.args)} are not those that the panel was made with: it was "
                "edited. Take the file from where it was made, or make a new panel"
            )
        return panel

    def save(self, path: Path) -> None:
        """Write the panel to a file, completely or not at all."""
        replace_text(path, self.to_json())

    @classmethod
    def load(cls, path: Path, tasks: Sequence[Task]) -> Self:
        """Read a panel.

        Args:
            path: what ``save`` wrote.
            tasks: the environment's tasks of the split; raises PanelError unless they still hold the panel's.
        """
        try:
            panel = cls.from_json(path.read_text(encoding="utf-8"))
        except PanelError as error:
            raise PanelError(f"{path}: {error}") from None
        panel.find(tasks)
        return panel


def _of_args(args: Mapping[str, Any]) -> str:
    return digest("panel args", json.dumps(dict(args), sort_keys=True))


def selection_remark(panel: Mapping[str, Any]) -> str | None:
    """A line on tasks that were chosen since a policy failed at them; None for other panels.

    Args:
        panel: as in summaries, see ``Panel.facts``.
    """
    if not (names := panel.get("failed_by")):
        return None
    return (
        f"these tasks were chosen because {' and '.join(map(str, names))} failed at them: success here can only rise "
        "from there, by chance too, so it shows no progress; compare on tasks that no result has chosen"
    )


def make_panel(
    tasks: Sequence[Task],
    env: str,
    split: str,
    limit: int | None = None,
    args: Mapping[str, Any] | None = None,
    env_identity: EnvIdentity | None = None,
) -> Panel:
    """The first ``limit`` different problems of a split, in order.

    Args:
        tasks: the split's tasks; a long generated sequence is read only as far as needed.
        env: the environment's id, or ``FILE.py:Class``.
        split: the split.
        limit: how many problems at most; None takes all that there are.
        args: arguments of the environment's constructor.
        env_identity: of the environment; a panel leaves its wrappers out.

    Raises:
        PanelError: there is none.
    """
    if limit is not None and limit < 1:
        raise PanelError(f"a panel has at least 1 task, not {limit}")
    chosen: dict[str, Task] = {}
    for task in tasks:
        if len(chosen) == limit:
            break
        chosen.setdefault(task.content, task)
    ids, bare = tuple(task.id for task in chosen.values()), None if env_identity is None else env_identity.bare
    return Panel(env, split, ids, tuple(chosen), dict(args or {}), bare)


def overlap(panel: Panel, seen_contents: Collection[str]) -> list[str]:
    """Ids of the panel's tasks that are among problems seen before, under any name.

    Args:
        seen_contents: hashes, ``Task.content``.
    """
    seen = frozenset(seen_contents)
    return [task for task, content in zip(panel.tasks, panel.contents, strict=True) if content in seen]


def portable_name(env: str) -> str:
    """The environment's name without the folder of its file, which differs between machines."""
    file, colon, name = env.rpartition(":")
    return f"{Path(file).name}:{name}" if colon and file.endswith(".py") else env
