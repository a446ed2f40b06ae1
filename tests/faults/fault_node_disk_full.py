"""The disk of one node is full for a while: of a host, whose environment keeps a file, or of the run's own.

At a host the environment raises, and its episode is tried again at the other one, to the same weights. In one run it is
the same host each time: an episode is tried three times at most. A run whose own disk is full ends with its own exit
status, and goes on with the same nodes to the same weights. One of the samplers has no disk at all: it needs none. The
kernel's limit on file sizes stands in for a full disk, as in ``fault_disk_full``.
"""

import os
import resource
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nodes import Calm, Node, another, has_begun, is_running, nodes, placed, rest, work_on
from numpy.random import Generator
from scribe import REFUSED
from short_runs import ended, start
from tally import Tally

from manyturn.agents.play.error_limit import TooManyErrors
from manyturn.agents.records.episode_log import DiskFull
from manyturn.envs.contract.random_keys import generator
from manyturn.trainers.recipe.config import RunConfig

SHORT, LONG = 4, 40
_STATUS = 4
_SCRIBE = f"{Path(__file__).with_name('scribe.py')}:Scribe"
_PATIENCE = 20.0  # seconds in which something is written at a host
_OWN = 0.4  # share of the runs whose own disk is struck in the end


def run(count: int, seed: int, folder: Path) -> Tally:
    config, rng, tally = _config((), ()), generator("node_disk_full", seed), Tally()
    with _refusals() as refused, nodes(2, 2, _SCRIBE) as found:
        calm = Calm(folder / "calm", work=lambda path: _finish(path, config))
        hosts, config = found[:2], _config([one.url for one in found[:2]], [one.url for one in found[2:]])
        _set_disk(found[2].process, full=True)
        while tally.injected < count:
            path, most = another(folder), count - tally.injected
            child, struck, own = start(lambda path=path: _work(path, config)), 0, False
            if has_begun(path, child):
                struck = _strike(hosts[int(rng.integers(2))], child, rng, most, refused)
                if own := struck < most and rng.random() < _OWN and is_running(child):
                    _set_disk(child, full=True)
            status = ended(child)
            if own and status == _STATUS:
                struck += 1
                child = start(lambda path=path: _work(path, config))
                tally += calm.judge(path, ended(child), struck, resumes=1)
            else:
                tally += calm.judge(path, status, struck)
            if tally.lost:
                break
    return tally


def _config(hosts: list[str] | tuple[()], samplers: list[str] | tuple[()]) -> RunConfig:
    return placed(hosts, samplers, env={"id": _SCRIBE}, checkpoint_every=1)


def _work(path: Path, config: RunConfig) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # may be a file, which cannot be written either
    try:
        work_on(path, config)
    except DiskFull:
        sys.exit(_STATUS)
    except TooManyErrors:
        sys.exit(5)


def _finish(path: Path, config: RunConfig) -> None:
    if status := ended(start(lambda: work_on(path, config))):
        raise RuntimeError(f"the undisturbed run ended with status {status}")


def _strike(host: Node, child: int, rng: Generator, most: int, refused: int) -> int:
    """Fill the disk of a host several times for a while; says how often something was refused there."""
    struck, times = 0, int(rng.integers(2, 10))
    for _ in range(times):
        if struck == most or not rest(child, rng.uniform(0.0, 0.3)):
            break
        _drain(refused)
        _set_disk(host.process, full=True)
        rest(child, _PATIENCE, wakes=lambda: _is_met(refused))
        rest(child, rng.uniform(0.0, 1.0))
        _set_disk(host.process, full=False)
        struck += _is_met(refused)
    return struck


def _set_disk(process: int, full: bool) -> None:
    limit = 0 if full else resource.RLIM_INFINITY
    resource.prlimit(process, resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))


@contextmanager
def _refusals() -> Iterator[int]:
    """What environments that are begun meanwhile write to when a disk refuses, to be read."""
    there, here = os.pipe()
    os.set_inheritable(here, True)
    os.environ[REFUSED] = str(here)
    try:
        yield there
    finally:
        del os.environ[REFUSED]
        os.close(there)
        os.close(here)


def _is_met(refused: int) -> bool:
    """Whether a write has failed since the last ``_drain``."""
    return bool(select.select([refused], [], [], 0)[0])


def _drain(refused: int) -> None:
    if _is_met(refused):
        os.read(refused, 65536)
