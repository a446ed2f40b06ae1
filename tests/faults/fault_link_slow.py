"""A link passes nothing on for a while: shorter than a node may be silent, or so long that it counts as lost."""

import asyncio
from pathlib import Path

from behind_wires import disturbed
from elsewhere import Wire
from nodes import SILENCE
from numpy.random import Generator
from tally import Tally

SHORT, LONG = 4, 40


def run(count: int, seed: int, folder: Path) -> Tally:
    return disturbed(count, seed, folder, "link_slow", _hold)


async def _hold(wire: Wire, rng: Generator) -> None:
    wire.hold()
    await asyncio.sleep(rng.uniform(0.1, 1.0) * (2 * SILENCE if rng.random() < 0.3 else SILENCE / 2))
    wire.flow()
