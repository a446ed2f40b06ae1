"""The container engine that an environment's arguments ask for."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from manyturn.containers.engine.container_engine import ContainerEngine
from manyturn.containers.engine.images import resolve
from manyturn.containers.engine.preflight import demand, examined
from manyturn.containers.sandbox import EngineUnavailable
from manyturn.envs.contract.registration.env_registry import NeedsSetup


def usable(engine: Mapping[str, Any] | None, what: str) -> ContainerEngine:
    """An engine that answers, enforces what is demanded and has the image.

    Args:
        engine: arguments of ``ContainerEngine``, such as ``image``.
        what: needs it, in the plural.

    Raises:
        ValueError: an argument that ``ContainerEngine`` does not take.
        NeedsSetup: what is missing.
    """
    try:
        made = ContainerEngine.model_validate(engine or {})
    except ValidationError as error:
        fault = error.errors()[0]
        why = fault["msg"].removeprefix("Value error, ")
        raise ValueError(f"engine: {'.'.join(map(str, fault['loc']))}: {why}") from None
    try:
        demand(examined(), made)
        resolve(made.image)
    except EngineUnavailable as error:
        raise NeedsSetup(f"{what} need containers: {error}") from error
    return made
