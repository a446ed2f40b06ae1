"""The connection to a host or sampler is cut without a word, between or in the middle of messages."""

from pathlib import Path

from behind_wires import disturbed
from elsewhere import Wire
from numpy.random import Generator
from tally import Tally

SHORT, LONG = 4, 60


def run(count: int, seed: int, folder: Path) -> Tally:
    return disturbed(count, seed, folder, "network_cut", _cut)


async def _cut(wire: Wire, rng: Generator) -> None:
    wire.cut()
