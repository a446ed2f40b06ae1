"""The machine of Ray's head is gone, or its process alone, while a run plays at a host that Ray has placed.

The run ends with the reason, or plays on to its end where its host outlives the head, and goes on with another Ray to
the same weights. Nothing of Ray is left.
"""

import os
import signal
import time
from pathlib import Path

from nodes import SILENCE, Calm, another, is_running, placed, rest, work_on
from ray_left import left_of_ray, of_ray
from ray_nodes import ray_processes_of
from short_runs import ended, start
from tally import Tally

from manyturn.envs.contract.random_keys import generator

NEEDS = "ray"
SHORT, LONG = 2, 12
_MOST = 3  # strikes of one run
_LOST = 1  # how a run ends whose Ray is gone
_SECONDS = 300.0
_MACHINE = (["gcs_server"], ["raylet", "--raylet_socket_name"], ["ray::RayHost"])


def run(count: int, seed: int, folder: Path) -> Tally:
    calm, rng, tally = Calm(folder / "calm"), generator("ray_head", seed), Tally()
    placement = {"kind": "ray", "wait": _SECONDS, "silence": SILENCE}
    config = placed((), (), placement=placement, checkpoint_every=1)
    while tally.injected < count:
        path, before, struck, status = another(folder), of_ray(), 0, 0
        child = start(lambda path=path: work_on(path, config))
        while struck < min(_MOST, count - tally.injected) and _plays(child) and rest(child, rng.uniform(0.0, 2.0)):
            struck += _kill(child, *(_MACHINE if rng.random() < 0.7 else _MACHINE[:1]))
            status = ended(child)
            child = start(lambda path=path: work_on(path, config))
            if status not in (0, _LOST):
                break
        tally += calm.judge(path, ended(child) or status * (status != _LOST), struck, resumes=struck)
        left = left_of_ray(before)
        tally += Tally(orphans=len(left), notes=[f"left behind: {one}" for one in sorted(left)])
        if tally.lost:
            break
    return tally


def _plays(child: int) -> bool:
    """Wait until a run has a host; False if it has ended."""
    until = time.monotonic() + _SECONDS
    while is_running(child) and time.monotonic() < until and not ray_processes_of(child, "ray::RayHost"):
        time.sleep(0.05)
    return is_running(child)


def _kill(child: int, *kinds: list[str]) -> bool:
    """Kill processes of Ray that a run has started, of one kind after the other; False if there were none."""
    victims = [one for words in kinds for one in ray_processes_of(child, *words)]
    for one in victims:
        os.kill(one, signal.SIGKILL)
    return bool(victims)
