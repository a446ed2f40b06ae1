"""One of two ranks that learn as one is killed: the other ends, none is left, and the run goes on to the same bits."""

import os
import signal
import socket
from pathlib import Path

from nodes import Calm, another, has_begun, placed, rest, work_on
from numpy.random import Generator
from short_runs import ended, start
from tally import Tally

from manyturn.envs.contract.random_keys import generator
from manyturn.trainers.recipe.config import RunConfig
from manyturn.trainers.run.setup.ranks.rank_startup import follow

SHORT, LONG = 1, 20
_RANKS = 2
_MOST = 3  # kills of one run: from one to the next it has to reach a checkpoint for ever to end


def run(count: int, seed: int, folder: Path) -> Tally:
    config, rng, tally = placed((), (), steps=3, checkpoint_every=1), generator("rank", seed), Tally()
    calm = Calm(folder / "calm", work=lambda path: _finish(path, config))
    while tally.injected < count:
        path, struck, outlived = another(folder), 0, False
        ranks = _begun(path, config)
        while struck < min(_MOST, count - tally.injected) and not outlived and _runs_for(path, ranks, rng):
            victim = int(rng.integers(_RANKS))
            os.kill(ranks[victim], signal.SIGKILL)
            struck += 1
            outlived = [ended(rank) for rank in ranks][1 - victim] == -signal.SIGKILL
            ranks = _begun(path, config)
        statuses = [status for rank in ranks if (status := ended(rank))]
        tally += calm.judge(path, statuses[0] if statuses else int(outlived), struck, resumes=struck)
        if tally.lost:
            break
    return tally


def _runs_for(path: Path, ranks: list[int], rng: Generator) -> bool:
    """Whether a run has begun and goes on for a random while."""
    return has_begun(path, ranks[0]) and rest(ranks[0], rng.uniform(0.0, 1.5))


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
