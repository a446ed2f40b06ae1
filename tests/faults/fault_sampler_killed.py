"""A sampler is killed or stopped in the middle of a step: the other one draws what it owed, to the same weights."""

from pathlib import Path

from strikes import stricken
from tally import Tally

SHORT, LONG = 3, 40


def run(count: int, seed: int, folder: Path) -> Tally:
    return stricken(count, seed, folder, "sampler_killed", samplers=2)
