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
    before = of_ray()
    yield
    assert left_of_ray(before) == set()


def left_of_ray(before: set[str]) -> set[str]:
    """What there is of Ray, after a while, that there was not before."""
    until = time.monotonic() + 120  # a busy machine takes its time
    while (left := of_ray() - before) and time.monotonic() < until:
        time.sleep(0.1)
    return left


def of_ray() -> set[str]:
    """Processes of Ray, hosts and ranks, and folders of a run's own Ray; a cluster keeps idle workers of its own."""
    actors = ("ray::RayHost", "ray::RaySampler", "ray::RayRank", "envs.hosting.worker_main")
    words = (*actors, "manyturn.serving.ray.launcher", "gcs_server", "raylet")
    folders = map(str, Path(tempfile.gettempdir()).glob("mt-ray-*"))
    return {*(f"{word} {pid}" for word in words for pid in ray_processes(word)), *folders}
