"""Environments as folders of other projects: a package that installs and runs there, or a data set of the tasks."""

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import manyturn
from manyturn.envs.contract.registration.env_registry import NeedsSetup, is_elsewhere, is_file, package_of_env
from manyturn.envs.contract.tasks.panel import Panel, make_panel, portable_name
from manyturn.envs.contract.wrappers.reward_wrapper import plain_wrappers
from manyturn.envs.hosting.handle.env_fingerprint import identity_of
from manyturn.envs.hosting.handle.env_handle import EnvHandle
from manyturn.export.exported_env import PANEL, WORLD
from manyturn.export.packages import PACKAGES, dashed, write_package
from manyturn.export.task_dataset import rows_of, write_dataset, write_rows

Kind = Literal["verifiers", "skyrl", "trl", "harbor", "dataset"]

_SPLIT = re.compile(r"\w[\w.-]*", re.ASCII)
_PLAIN = re.compile(r"[\w./:@~-]+", re.ASCII)  # what an environment's name may hold, since code is written with it


def export(
    env: str,
    out: Path,
    as_: Kind = "verifiers",
    args: Mapping[str, Any] | None = None,
    wrappers: Sequence[Any] = (),
    limit: int = 1000,
) -> dict[str, Panel]:
    """Write an environment as a folder of another project.

    Args:
        env: an id, or FILE.py:Class, whose file alone is copied.
        as_: a package for verifiers, SkyRL or TRL, tasks for Harbor, or a data set as the Hugging Face Hub has them.
        out: the folder; it must be empty, or not there.
        args, wrappers: of the environment.
        limit: tasks of each split.

    Returns:
        Split -> its tasks.

    Raises:
        ValueError: the environment cannot be exported, or there is something in the folder.
        EnvError: a task could not be begun, so that there is no first observation of it.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ValueError(f"{out} is there already: name another folder, or remove it")
    if is_elsewhere(env):
        raise ValueError(f"{env} is another project's: export it there, or an environment of ours")
    if not _PLAIN.fullmatch(portable_name(env)):
        raise ValueError(f"{env!r} would stand in code: give the file a name of letters, digits, dots and dashes")
    plain = plain_wrappers(wrappers)
    handle = EnvHandle(env, args, wrappers)
    try:
        if len(handle.roles) > 1:
            raise ValueError(f"{env} has the roles {', '.join(handle.roles)}: an exported environment has one player")
        if odd := [split for split in handle.splits if not _SPLIT.fullmatch(split)]:
            raise ValueError(f"{env} has a split {odd[0]!r}, which cannot be a file: name it by letters and digits")
        panels = {
            split: make_panel(tasks, env, split, limit, args, identity_of(handle))
            for split in handle.splits
            if (tasks := _of(handle, split))
        }
        if as_ == "harbor":
            _write_harbor(out, handle, panels, plain)
            return panels
        # TRL adds the first observation itself, to the last message.
        rows = {} if as_ == "verifiers" else rows_of(handle, panels, begun=as_ != "trl")
    finally:
        handle.close()
    name, there = class_name(env), portable_name(env)
    package = f"manyturn_{re.sub(r'(?<=[a-z0-9])(?=[A-Z])', '_', name).lower()}"
    folder = out if as_ == "dataset" else out / package
    folder.mkdir(parents=True, exist_ok=True)
    if is_file(env):
        # The library datasets takes a FILE.py at the top of a folder FILE for a script, and refuses it.
        code = folder / "code" if as_ == "dataset" else folder
        code.mkdir(exist_ok=True)
        shutil.copy(env.rpartition(":")[0], code)
        there = (code / there).relative_to(folder).as_posix()
    world = {"env": there, "args": dict(args or {}), "wrappers": plain, "version": manyturn.__version__}
    if (package_of_id := package_of_env(env)) is not None:
        world["package"] = package_of_id
    _write(folder / WORLD, json.dumps(world, indent=1) + "\n")
    for split, panel in panels.items():
        panel.save(folder / f"{split}{PANEL}")
    if as_ == "dataset":
        write_dataset(out, there, panels, rows)
        return panels
    write_package(PACKAGES[as_], out, package, name, there, panels)
    if as_ == "skyrl":
        rows = {split: [{**row, "env_class": dashed(package)} for row in lines] for split, lines in rows.items()}
    if rows:
        write_rows(out, rows)
    return panels


def _write_harbor(out: Path, handle: EnvHandle, panels: Mapping[str, Panel], wrappers: Sequence[Any]) -> None:
    from manyturn.export.harbor import write_tasks  # which reads the software family

    if wrappers:
        raise ValueError("a task of Harbor has no rewards of turns: leave the wrappers out")
    write_tasks(out, handle, panels)
    for split, panel in panels.items():
        panel.save(out / f"{split}{PANEL}")


def class_name(env: str) -> str:
    """The beginning of the names of an exported environment's classes.

    >>> class_name("manyturn/Household-v0")
    'Household'
    """
    word = re.sub(r"-v\d+$", "", re.split(r"[/:]", env)[-1])
    name = re.sub(r"\W", "", word.title() if word.islower() else word, flags=re.ASCII)
    return name if name[:1].isalpha() else f"World{name}"  # a class cannot begin with a digit


def _of(handle: EnvHandle, split: str) -> Any:
    """The tasks of a split; none if this machine lacks them."""
    try:
        return handle.tasks(split)
    except NeedsSetup:
        return ()


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
