"""A sampler is killed or stopped in the middle of a step: the other one draws what it owed, to the same weights."""

import signal
from pathlib import Path

from nodes import SILENCE, Calm, Node, has_begun, nodes, placed, rest, work_on
from numpy.random import Generator
from short_runs import ended, start
from tally import Tally

from manyturn.envs.contract.keys import generator

SHORT, LONG = 3, 40


def run(count: int, seed: int, folder: Path) -> Tally:
    calm, rng, tally = Calm(folder / "calm"), generator("sampler_killed", seed), Tally()
    with nodes(0, 2) as samplers:
        config = placed((), [one.url for one in samplers])
        while tally.injected < count:
            path = folder / f"stormy-{tally.injected}"
            child, struck = start(lambda path=path: work_on(path, config)), 0
            if has_begun(path, child):
                struck = _strike(samplers, child, rng, count - tally.injected)
            tally += calm.judge(path, ended(child), struck)
            if tally.lost:
                break
    return tally


def _strike(samplers: list[Node], child: int, rng: Generator, most: int) -> int:
    """Strike one sampler after the other while a run draws there, and have each come back; says how often."""
    struck = 0
    while struck < most and rest(child, rng.uniform(0.0, 0.4)):
        victim = samplers[int(rng.integers(2))]
        if rng.random() < 0.6:
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
