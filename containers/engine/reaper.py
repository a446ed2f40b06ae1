"""Removes the containers of processes that have ended.

A container ends by itself when its process does. This is for those that could not, such as one whose engine was halted.
"""

from manyturn.containers.engine.container_engine import LABEL, client, engine_errors
from manyturn.containers.engine.owner import read_labels


def reap(everyone: bool = False) -> list[str]:
    """Names of the containers that were removed.

    Args:
        everyone: also those whose process runs, and those that say nothing of it.

    Raises:
        EngineUnavailable: no engine answers.
    """
    removed = []
    with engine_errors("list containers"):
        from docker.errors import APIError

        for container in client().containers(all=True, filters={"label": f"{LABEL}=1"}):
            owner = read_labels(container.get("Labels") or {})
            if everyone or (owner is not None and owner.dead):
                try:
                    client().remove_container(container["Id"], force=True, v=True)
                except APIError:
                    continue  # another process removes it
                removed.append(container["Names"][0].lstrip("/"))
    return sorted(removed)
