"""One of two ranks that learn as one is killed: the other ends, none is left, and the run goes on to the same bits."""

import os
import signal
import socket
from pathlib import Path

from nodes import Calm, has_begun, placed, rest, work_on
from short_runs import ended, start
from tally import Tally

from manyturn.envs.contract.keys import generator
from manyturn.trainers.recipe.config import RunConfig
from manyturn.trainers.run.ranked import follow

SHORT, LONG = 1, 15
_RANKS = 2


def run(count: int, seed: int, folder: Path) -> Tally:
    config, rng, tally = placed((), (), steps=3, checkpoint_every=1), generator("rank", seed), Tally()
    calm = Calm(folder / "calm", work=lambda path: _finish(path, config))
    for number in range(2 * count):  # some strikes come after the run
        if tally.injected == count:
            break
        path, victim = folder / f"stormy-{number}", int(rng.integers(_RANKS))
        ranks = _begun(path, config)
        struck = has_begun(path, ranks[0]) and rest(ranks[0], rng.uniform(0.0, 1.5))
        if struck:
            os.kill(ranks[victim], signal.SIGKILL)
        ends = [ended(rank, 60.0) for rank in ranks]
        outlived = struck and ends[1 - victim] == -signal.SIGKILL  # after a minute
        if struck:
            _finish(path, config)
        tally += calm.judge(path, int(outlived), int(struck), int(struck))
    return tally


def _begun(path: Path, config: RunConfig) -> list[int]:
    """The processes of a run's ranks, which is begun or continued, as torchrun starts them."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    return [start(lambda rank=rank: _be(rank, port, path, config)) for rank in range(_RANKS)]


def _be(rank: int, port: int, path: Path, config: RunConfig) -> None:
    size = {"WORLD_SIZE": f"{_RANKS}", "LOCAL_WORLD_SIZE": f"{_RANKS}"}
    here = {"RANK": f"{rank}", "LOCAL_RANK": f"{rank}", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": f"{port}"}
    os.environ |= {"TORCHELASTIC_RUN_ID": "faults", **size, **here}
    if rank:
        follow()
    else:
        work_on(path, config)


def _finish(path: Path, config: RunConfig) -> None:
    """Bring a run to its end with all of its ranks. Raises RuntimeError where it does not get there."""
    if statuses := [status for rank in _begun(path, config) if (status := ended(rank))]:
        raise RuntimeError(f"a rank of {path} ended with status {statuses[0]}")
