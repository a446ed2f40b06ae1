"""Check that the environments are those a suite was frozen on, and list the ones this machine lacks."""

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from manyturn.api.task_panel_file import args_of
from manyturn.envs.contract.registration.env_registry import NeedsSetup, is_only_by_hand
from manyturn.envs.contract.tasks.panel import PanelError
from manyturn.envs.hosting.handle.env_handle import EnvHandle
from manyturn.suites.suite import NEEDS, Suite, SuiteError, SuitePanel
from manyturn.suites.transcript_hash import answers_of
from manyturn.terminal import command_exit


class Playable(NamedTuple):
    """The panels that can be played here, and of the others why not."""

    ready: list[SuitePanel]
    lacking: dict[str, str]


def refuse_needs(required: Sequence[str]) -> None:
    """Raise SuiteError for a word that is no need."""
    for need in required:
        if need not in NEEDS:
            raise SuiteError(f"--require {need}: name {' or '.join(NEEDS)}")


def checked(suite: Suite, file: Path, panels: Sequence[SuitePanel], required: Sequence[str] = ()) -> Playable:
    """Compare panels with their environments.

    Args:
        file: the suite's, for errors.
        panels: some of the suite's.
        required: needs whose absence is an error.

    Raises:
        SuiteError: a task, a rule or a word has changed, or what is required is absent.
    """
    playable = Playable([], {})
    for one in panels:
        try:
            _compare(suite, file, one)
        except (NeedsSetup, ImportError) as error:
            if not one.need:
                raise
            lack = command_exit.lack_of(error)
            if one.need in required:
                raise SuiteError(f"{one.name} is required by --require {one.need}, but {lack}") from None
            playable.lacking[one.name] = lack
        else:
            playable.ready.append(one)
    return playable


def _compare(suite: Suite, file: Path, one: SuitePanel) -> None:
    """Raise SuiteError if the environment is another one than when the suite was frozen."""
    panel = one.panel
    if is_only_by_hand(panel.env):
        raise SuiteError(
            f"{file} names the environment {panel.env}, which is a file, a folder or an address: register it, "
            "and freeze its id"
        )
    with contextlib.closing(EnvHandle(panel.env, args_of(panel, file, panel.env, {}))) as handle:
        try:
            tasks = panel.find(handle.tasks(panel.split))
        except PanelError as error:
            raise SuiteError(f"{one.name} has changed since {suite.name} was frozen: {error}. {_fix(suite)}") from None
        if answers_of(handle, tasks, one.replays) != one.answers:
            raise SuiteError(
                f"{one.name} has changed since {suite.name} was frozen: {panel.env} has other rules, or answers other "
                f"words or rewards to the actions that were recorded. {_fix(suite)}"
            )


def _fix(suite: Suite) -> str:
    return (
        f"Results on it would not compare: use manyturn {suite.frozen_with}, with which it was frozen, or freeze "
        "another suite under a new name with manyturn suite freeze"
    )
