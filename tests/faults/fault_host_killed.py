"""A host of environments is killed or stopped in the middle of a run: the other one plays on, to the same weights."""

from pathlib import Path

from strikes import stricken
from tally import Tally

SHORT, LONG = 3, 40


def run(count: int, seed: int, folder: Path) -> Tally:
    return stricken(count, seed, folder, "host_killed", hosts=2)
