"""kill -9 of a run whose environments and tokens are elsewhere: its nodes are free again, it ends on the same bits."""

import os
import signal
from pathlib import Path

from nodes import Calm, another, nodes, placed, rest, work_on
from short_runs import ended, start
from tally import Tally

from manyturn.envs.contract.random_keys import generator

SHORT, LONG = 2, 30
_MOST = 4  # kills of one run: from one to the next it has to reach a checkpoint for ever to end


def run(count: int, seed: int, folder: Path) -> Tally:
    calm, rng, tally = Calm(folder / "calm"), generator("driver_killed", seed), Tally()
    with nodes(1, 1) as [host, sampler]:
        config = placed([host.url], [sampler.url])
        while tally.injected < count:
            path, struck = another(folder), 0
            child = start(lambda path=path: work_on(path, config))
            while struck < min(_MOST, count - tally.injected) and rest(child, rng.uniform(0.2, 2.5)):
                os.kill(child, signal.SIGKILL)
                if ended(child) != -signal.SIGKILL:
                    break
                struck += 1
                child = start(lambda path=path: work_on(path, config))
            tally += calm.judge(path, ended(child), struck, resumes=struck)
            if tally.lost:
                break
    return tally
