"""Panels as files: made from the tasks of a split, read, and checked against the environment."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from manyturn.agents.records.task_id_files import failed_policies, failure_remarks, named_tasks
from manyturn.envs.contract.registration.env_registry import (
    check_installed,
    guarded_arguments,
    is_elsewhere,
    is_only_by_hand,
    package_of_env,
)
from manyturn.envs.contract.tasks.env_facts import EnvFacts
from manyturn.envs.contract.tasks.env_identity import EnvIdentity
from manyturn.envs.contract.tasks.panel import Panel, PanelError, make_panel, portable_name, selection_remark
from manyturn.envs.contract.tasks.task_filter import chosen_tasks, names_all
from manyturn.envs.hosting.handle.env_fingerprint import identity_of
from manyturn.envs.hosting.handle.env_handle import EnvHandle
from manyturn.terminal.escape import visible
from manyturn.terminal.results_table import say


@dataclass(frozen=True)
class TaskChoice:
    """Tasks that a panel is made of.

    Attributes:
        split: the split that they are taken from.
        words: ids, ``@FILE``, ``failed:FOLDER`` or ``tag=NAME``; None: the first of the split.
        limit: how many of those at most; None: all where each word names a task, else ``usual``.
        usual: the limit where none is given.
    """

    split: str
    words: str | Sequence[str] | None = None
    limit: int | None = None
    usual: int = 128


def panel_of(
    choice: TaskChoice, facts: EnvFacts, env: str, args: Mapping[str, Any], env_identity: EnvIdentity
) -> Panel:
    """The panel of chosen tasks.

    Args:
        env: the environment's id, or ``FILE.py:Class``.
        args: arguments of its constructor.
        env_identity: of the environment.

    Raises:
        TaskChoiceError: a word names no task.
        PanelError: see ``make_panel``.
    """
    words = None if choice.words is None else named_tasks(choice.words, env)
    for remark in failure_remarks(choice.words or (), env_identity, args):
        print(visible(f"note: {remark}"), file=sys.stderr)
    limit = choice.usual if choice.limit is None and (words is None or not names_all(words)) else choice.limit
    panel = make_panel(chosen_tasks(words, choice.split, facts), env, choice.split, limit, args, env_identity)
    return replace(panel, package=package_of_env(env), failed_by=failed_policies(choice.words or ()))


def make_panel_file(
    env: str, choice: TaskChoice, out: Path, env_args: Mapping[str, Any], console: Console | None = None
) -> Panel:
    """Write a panel of chosen tasks to a file; one that holds another panel is refused."""
    handle = EnvHandle(env, env_args)
    try:
        panel = panel_of(choice, handle.facts(), env, env_args, identity_of(handle))
    finally:
        handle.close()
    if out.exists() and _parsed(out).hash != panel.hash:
        raise PanelError(f"{out} holds another panel, on which results may rest: name another file, or remove it")
    panel.save(out)
    console = console or Console()
    _say_panel(panel, console)
    if remark := limit_remark(panel, choice.limit):
        say(remark, console)
    return panel


def limit_remark(panel: Panel, limit: int | None) -> str | None:
    """Remark that a panel has fewer tasks than its limit; None where it has not."""
    if limit is None or len(panel) >= limit:
        return None
    return f"{len(panel)} tasks is all: there are no {limit} different problems to choose from"


def read_panel(path: Path, env: str | None = None, split: str | None = None) -> Panel:
    """Read a panel whose hash fits the file; ``Panel.find`` says whether the tasks still give it.

    Args:
        path: what ``manyturn panel make`` wrote.
        env, split: refused if they are given and not the panel's. An environment in a file or at an address must be
            given, since a panel is data, which starts no code and connects to nowhere; a file may be elsewhere now.
    """
    panel = _parsed(path)
    check_installed(env or panel.env, panel.package)
    if env is not None and portable_name(env) != portable_name(panel.env):
        raise PanelError(f"{path} is a panel of {panel.env}, not of {env}: leave --env out, or make another panel")
    if split is not None and split != panel.split:
        raise PanelError(f"{path} is a panel of the split {panel.split}: leave --split out, or make another panel")
    if env is None and is_only_by_hand(panel.env):
        what = "to which a connection would be made" if is_elsewhere(panel.env) else "whose code would run"
        what = "whose scripts would run" if panel.env.startswith("harbor:") else what
        raise PanelError(f"{path} names the environment {panel.env}, {what}: if you trust it, add --env {panel.env}")
    return panel


def args_of(
    panel: Panel, path: Path, env: str, overrides: Mapping[str, Any], inherited: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The environment's arguments on a panel: the file's, and from elsewhere those that a file must not give.

    Args:
        path: the panel's file, for errors.
        env: id or ``FILE.py:Class``, of a file that the user has named.
        overrides: from the command line; the file's others are not changed by it.
        inherited: from a run, where ``overrides`` lacks them.

    Raises:
        PanelError: the file gives what ``guarded_arguments`` names and nobody else does, or an argument has two values.
    """
    guarded = guarded_arguments(env, {**panel.args, **overrides})
    for name, value in overrides.items():
        if name not in guarded and (name not in panel.args or panel.args[name] != value):
            raise PanelError(f"{path} says which arguments: leave {name} out of --env.args, or make another panel")
    trusted = {**(inherited or {}), **overrides}
    doubted = {name: value for name, value in panel.args.items() if name in guarded and name not in trusted}
    if doubted:
        differences = ", ".join(f"{name} = {as_toml(value)}" for name, value in doubted.items())
        raise PanelError(
            f"{path} gives {env} the arguments {', '.join(doubted)}, which may name files, programs or keys of this "
            f"machine: if you trust them, add --env.args '{{{differences}}}'"
        )
    return {**panel.args, **{name: value for name, value in trusted.items() if name in guarded}}


def as_toml(value: Any) -> str:
    """A value of JSON as TOML has it on one line, with what is no plain sign written out."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(key)} = {as_toml(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(as_toml, value)) + "]"
    return json.dumps(value)


def _parsed(path: Path) -> Panel:
    try:
        return Panel.from_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise PanelError(f"there is no {path}: make it with manyturn panel make ENV --out {path}") from None
    except (PanelError, UnicodeDecodeError, IsADirectoryError) as error:
        raise PanelError(f"{path}: {error}") from None


def verify_panel_file(
    path: Path,
    env: str | None = None,
    console: Console | None = None,
    env_args: Mapping[str, Any] | None = None,
) -> Panel:
    """Check that the environment still has the tasks of a panel, and print what the panel is.

    Args:
        env: where the environment's file is now, if it has moved.
        env_args: arguments that a panel's file must not give, see ``args_of``.
    """
    panel = read_panel(path, env)
    handle = EnvHandle(env or panel.env, args_of(panel, path, env or panel.env, env_args or {}))
    try:
        panel.find(handle.tasks(panel.split))
        remark = panel.remark_on(identity_of(handle))
    except (PanelError, ValueError) as error:
        raise PanelError(f"{path}: {error}") from None
    finally:
        handle.close()
    console = console or Console()
    _say_panel(panel, console)
    if remark is not None:
        say(f"note: {remark}", console)
    return panel


def _say_panel(panel: Panel, console: Console) -> None:
    say(f"{panel.id}  hash {panel.hash}  {len(panel)} tasks", console)
    if remark := selection_remark(panel.facts):
        say(remark, console)
