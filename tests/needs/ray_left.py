"""What Ray and its hosts and ranks leave running or written on this machine."""

import contextlib
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from ray_nodes import ray_processes


@contextlib.contextmanager
def nothing_left() -> Iterator[None]:
    """What Ray has started and written is gone soon after."""
    before = set(_of_ray())
    yield
    until = time.monotonic() + 30
    while (left := set(_of_ray()) - before) and time.monotonic() < until:
        time.sleep(0.1)
    assert not left


def _of_ray() -> list[str]:
    """Processes of Ray, hosts and ranks, and folders of a run's own Ray; a cluster keeps idle workers of its own."""
    actors = ("ray::RayHost", "ray::RayRank", "envs.hosting.worker_main")
    words = (*actors, "manyturn.serving.ray_main", "gcs_server", "raylet")
    folders = map(str, Path(tempfile.gettempdir()).glob("mt-ray-*"))
    return [*(f"{word} {pid}" for word in words for pid in ray_processes(word)), *folders]
