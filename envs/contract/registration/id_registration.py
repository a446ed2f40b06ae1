"""Registration of environment ids with Gymnasium. ``import manyturn`` runs it, so it imports nothing else."""

from typing import Any

import gymnasium

REGISTERED: set[str] = set()  # ids of this project and of its plugins


def register(id: str, entry_point: Any, **kwargs: Any) -> None:
    """Register an environment with Gymnasium; registering the same thing twice is allowed.

    Args:
        id: ``namespace/Name-v0``.
        entry_point: ``"package.module:Class"`` or the class.
        kwargs: passed to the class's constructor.
    """
    spec = gymnasium.registry.get(id)
    if spec is not None:
        if spec.entry_point == entry_point and spec.kwargs == kwargs:
            return
        raise ValueError(f"{id} is registered already, as {spec.entry_point}: choose another name or version")
    REGISTERED.add(id)
    # TextEnv sees itself to reset before step; Gymnasium's wrapper for it would refuse a step after restore.
    gymnasium.register(id, entry_point, order_enforce=False, kwargs=kwargs)
