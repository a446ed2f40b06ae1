"""Differences of a run's configuration from the one that its last checkpoint was written with."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from manyturn.envs.contract.options.config_diff import changes, shown
from manyturn.envs.contract.options.options import UNFINISHED, ConfigError
from manyturn.trainers.recipe.config import RunConfig, parse_config
from manyturn.trainers.record.checkpoint import read_state


def plain(config: RunConfig) -> dict[str, Any]:
    """The configuration as a checkpoint holds it."""
    return json.loads(json.dumps(config.model_dump(mode="json")))


def edits_since(checkpoint: Path | None, config: RunConfig) -> dict[str, tuple[Any, Any]]:
    """Entries that differ, by their place, with both values; none without a checkpoint.

    Where episodes are played is no edit: it changes no result.
    """
    if checkpoint is None:
        return {}
    edits = changes(complete(read_state(checkpoint).get("config", {})), plain(config))
    return {place: values for place, values in edits.items() if place.partition(".")[0] != "placement"}


def complete(stored: dict[str, Any]) -> dict[str, Any]:
    """With the entries that did not exist yet when it was stored: they meant their defaults."""
    try:
        return plain(parse_config(stored, UNFINISHED))
    except ConfigError:  # it has an entry that is gone, and that is a change
        return stored


def refuse_edits(path: Path, checkpoint: Path | None, edits: Mapping[str, tuple[Any, Any]]) -> None:
    """Raise ConfigError where the configuration was edited since the checkpoint."""
    if edits:
        raise ConfigError(
            f"{path}/config.toml was edited since {checkpoint}: {shown(edits)}; take the edit back, or accept it "
            f"with manyturn train --resume {path} --accept-config"
        )
