"""Nodes that are killed and started again, or stopped for a while, one after the other in one run."""

import signal
from pathlib import Path

from nodes import MOST, SILENCE, Calm, Node, another, has_begun, nodes, placed, rest, work_on
from numpy.random import Generator
from short_runs import ended, start
from tally import Tally

from manyturn.envs.contract.random_keys import generator


def stricken(count: int, seed: int, folder: Path, name: str, hosts: int = 0, samplers: int = 0) -> Tally:
    """Runs with these nodes, until so many strikes have met one of them."""
    calm, rng, tally = Calm(folder / "calm"), generator(name, seed), Tally()
    with nodes(hosts, samplers) as found:
        config = placed([one.url for one in found[:hosts]], [one.url for one in found[hosts:]])
        while tally.injected < count:
            path = another(folder)
            child, struck = start(lambda path=path: work_on(path, config)), 0
            if has_begun(path, child):
                struck = _strike(found, child, rng, min(MOST, count - tally.injected))
            tally += calm.judge(path, ended(child), struck)
            if tally.lost:
                break
    return tally


def _strike(found: list[Node], child: int, rng: Generator, most: int) -> int:
    """Strike one node after the other while a run goes on, and have each come back; says how often."""
    struck = 0
    while struck < most and rest(child, rng.uniform(0.0, 0.4)):
        victim = found[int(rng.integers(len(found)))]
        if rng.random() < 0.7:
            victim.kill()
            struck += 1
            rest(child, rng.uniform(0.0, 0.5))
            victim.start()
        else:
            victim.signal(signal.SIGSTOP)
            struck += 1
            rest(child, rng.uniform(0.0, 1.5 * SILENCE))
            victim.signal(signal.SIGCONT)
    return struck
