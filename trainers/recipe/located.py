"""Paths of a configuration that hold from any folder, so that a run can be resumed and evaluated from elsewhere."""

from pathlib import Path

from manyturn.trainers.recipe.config import RunConfig


def located(config: RunConfig) -> RunConfig:
    """The configuration with the environment's file and folders by their absolute paths."""
    env = config.env.model_copy(update={"id": _absolute(config.env.id)})
    warmup = config.warmup
    for name in ("from_run", "trajectories"):
        if (place := getattr(warmup, name)) is not None:
            warmup = warmup.model_copy(update={name: str(Path(place).resolve())})
    return config.model_copy(update={"env": env, "model": config.model.located(), "warmup": warmup})


def _absolute(env: str) -> str:
    file, colon, name = env.rpartition(":")
    return f"{Path(file).resolve()}:{name}" if colon and file.endswith(".py") else env
