"""The kernel kills a worker for its memory: the episode is played again and comes out the same."""

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from chaos import GROUP, TURNS
from tally import Tally
from trial import Trial

from manyturn.envs.contract.random_keys import generator

SHORT, LONG = 4, 30
_BYTES = 32 * 2**20
# Root of control groups, and its files for the limit and for events, by version.
_VERSIONS = (
    ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.oom_control"),
    ("/sys/fs/cgroup", "memory.max", "memory.events"),
)


def lacking() -> str:
    """What is missing for this class; empty if it has all."""
    with contextlib.suppress(OSError, StopIteration), _control_group():
        return ""
    return "the right to make a control group of memory"


def run(count: int, seed: int, folder: Path) -> Tally:
    rng = generator("memory_kill", seed)
    schedule = {
        f"train/{i}": [(str(rng.choice(["step", "expert"])), int(rng.integers(TURNS)), "starve")] for i in range(count)
    }
    trial = Trial(folder, seed, schedule)
    with _control_group() as (group, kills):
        os.environ[GROUP] = str(group)
        asyncio.run(_play(trial, count))
        unfinished = [record.key.task for record in trial.records if record.ending.is_error]
        tally = trial.audit(broken=unfinished)
        if (killed := kills()) < count:
            tally.notes.append(f"the kernel killed {killed} of {count}")
            tally.survived = min(tally.survived, killed)
    return tally


async def _play(trial: Trial, episodes: int) -> None:
    async with trial.seats(limit=2, workers=2, timeout=20.0) as seats:
        await trial.play(seats, range(episodes))


@contextlib.contextmanager
def _control_group() -> Iterator[tuple[Path, Callable[[], int]]]:
    """A control group of little memory, and the number of its kills. Raises OSError where none can be made."""
    root, limit, events = next(names for names in _VERSIONS if Path(names[0], "cgroup.procs").exists())
    group = Path(root, f"manyturn-faults-{os.getpid()}")
    group.mkdir()
    try:
        (group / limit).write_text(str(_BYTES))
        yield group, lambda: int(dict(line.split() for line in (group / events).read_text().splitlines())["oom_kill"])
    finally:
        group.rmdir()
