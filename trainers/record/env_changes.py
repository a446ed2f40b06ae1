"""Differences of a run's environment from the one that its last checkpoint was written with."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from manyturn.envs.contract.options.options import ConfigError
from manyturn.envs.contract.tasks.env_identity import KEY, EnvIdentity, differences, listed


def env_changes_since(was: EnvIdentity | None, now: EnvIdentity, edited: Collection[str]) -> list[str]:
    """Words for each fact that differs; none where the earlier environment is unknown.

    Options of wrappers are the configuration's, which says itself how they were edited.

    Args:
        was: of the last checkpoint.
        edited: places of the configuration that were edited; the files of edited wrappers are others.
    """
    if was is None:
        return []
    if {"env.wrappers", "envs"} & set(edited):
        return differences(was.bare, now.bare)
    return differences(was.without_rewards, now.without_rewards)


def refuse_env_changes(path: Path, checkpoint: Path | None, words: Sequence[str]) -> None:
    """Raise ConfigError where the environment has changed since the checkpoint."""
    if words:
        raise ConfigError(
            f"the environment has changed since {checkpoint}: {listed(words)}; take the change back, or accept it with "
            f"manyturn train --resume {path} --accept-env"
        )


def env_changes_at(changes: Sequence[Mapping[str, Any]], step: int) -> str | None:
    """Differences of a step's environment from that of the step before; None without any.

    Args:
        changes: those that were accepted, as the run's state has them.
    """
    words = [word for change in changes if change["step"] == step - 1 for word in change["differences"]]
    return listed(words) if words else None


def env_identity_at(state: Mapping[str, Any], step: int) -> dict[str, Any] | None:
    """The identity of the environment that a step was played in, as plain values; None where it is unknown.

    Args:
        state: the run's, with ``env_identity`` and ``env_changes``.
    """
    later = (change["before"] for change in state.get("env_changes", ()) if change["step"] >= step)
    return next(later, state.get(KEY)) or None


def env_change_lines(changes: Sequence[Mapping[str, Any]]) -> list[str]:
    """A line on each change that was accepted."""
    return [
        f"the environment changed after step {change['step']}: {listed(change['differences'])}. Figures from before "
        "that are of the other environment"
        for change in changes
    ]
