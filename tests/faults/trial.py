"""Plays episodes of the environment that does harm, and compares each with the same one undisturbed."""

import asyncio
import math
import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chaos import MARK, TURNS, Fault, answer, read_log
from tally import Tally

from manyturn.agents.play.concurrent_episodes import Patience, gather
from manyturn.agents.play.episode import Act, Ending, Episode
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.envs.contract.random_keys import digest, seed_of
from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.hosting.handle.env_handle import Answer
from manyturn.envs.hosting.local.seats import InlineSeats, Seat, Seats, open_seats

_CHAOS = Path(__file__).with_name("chaos.py")
CHAOS = f"{_CHAOS}:Chaos"
Schedule = dict[str, list[tuple[str, int, str]]]  # task id -> (where, turn, kind) of each harm
ATTEMPTS = 4
Plan = Sequence[tuple[Task, EpisodeKey]]


class Asker:
    """Says something else at each turn of each episode, and looks whether what it hears belongs to that.

    Attributes:
        wrong: answers that belong elsewhere.
        left: task and time of each attempt's end.
    """

    name = "asker"

    def __init__(self) -> None:
        self.wrong: list[str] = []
        self.left: list[tuple[str, float]] = []

    def player(self, key: EpisodeKey, instructions: str) -> "_Asking":
        return _Asking(self, key)


class _Asking:
    ledger = None

    def __init__(self, asker: Asker, key: EpisodeKey):
        self._asker, self._key, self._turn, self._said = asker, key, 0, ""

    async def act(self, step: Answer, seat: Seat) -> Act:
        expected = answer(self._key.task, self._turn, self._said, 0)[:-1]
        hint = await seat.expert()
        if not step.observation.startswith(expected) or hint != f"{self._key.task} at {self._turn}":
            self._asker.wrong.append(f"{self._key.task} turn {self._turn} heard {step.observation!r} and {hint!r}")
        self._said = f"{hint}, {seed_of('nonce', *self._key, self._turn)}"
        self._turn += 1
        return Act(self._said, self._said)

    def leave(self) -> None:
        self._asker.left.append((self._key.task, time.monotonic()))


@dataclass
class Trial:
    """Episodes with faults, in a folder of their own.

    Attributes:
        env: which environment of ``chaos.py`` does the harm.
        records: what ``gather`` reported, in the order of its reports.
    """

    folder: Path
    seed: int
    schedule: Schedule
    env: str = "Chaos"
    asker: Asker = field(default_factory=Asker)
    records: list[Episode] = field(default_factory=list)
    planned: list[tuple[Task, EpisodeKey]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.log = self.folder / f"faults-{digest(self.schedule)}.tsv"
        self.mark = os.environ[MARK] = f"chaos-{digest(str(self.folder), self.seed, self.schedule)}"

    def seats(self, **options: Any) -> Seats:
        """Where the harm is done; options as for ``open_seats``."""
        return open_seats(f"{_CHAOS}:{self.env}", {"log": str(self.log), "schedule": self.schedule}, **options)

    async def play(self, seats: Seats, numbers: Sequence[int]) -> None:
        """Play the tasks with these numbers once each."""
        plan = plan_of(seats, numbers, self.seed)
        self.planned += plan
        patience = Patience(ATTEMPTS, error_share=1.0)
        await gather(seats, self.asker, plan, max_turns=2 * TURNS, patience=patience, on_episode=self.records.append)

    @property
    def faults(self) -> list[Fault]:
        return read_log(self.log)

    def slowest_release(self) -> float:
        """The longest time in seconds from a fault to the end of the attempt that it hit."""
        return max(min(t for task, t in self.asker.left if task == f.task and t > f.time) - f.time for f in self.faults)

    def audit(self, broken: Sequence[str] = ()) -> Tally:
        """Count what became of the faults.

        Args:
            broken: ids of tasks whose faults broke a promise of their class in a way that the records do not show.
        """
        undisturbed = asyncio.run(_undisturbed([int(task.params["i"]) for task, _ in self.planned], self.seed))
        ends = Counter(record.key for record in self.records)
        faults, tally = self.faults, Tally(notes=[*self.asker.wrong])
        wrong = {r.key.task: _fault_of(r, undisturbed[r.key]) for r in self.records}
        tally.notes += [f"{task}: {text}" for task, text in wrong.items() if text]
        bad = {task for task, text in wrong.items() if text} | set(broken)
        bad |= {key.task for _, key in self.planned if ends[key] != 1}
        tally.injected = len(faults)
        tally.survived = sum(fault.task not in bad for fault in faults)
        tally.lost = sum(not ends[key] for _, key in self.planned)
        tally.duplicated = sum(n - 1 for n in ends.values())
        tally.misattributed = len(self.asker.wrong) + sum(bool(text) for text in wrong.values())
        orphans = left_behind(self.mark)
        tally.orphans = len(orphans)
        tally.notes += [f"left behind: {name}" for name in orphans]
        return tally


def plan_of(seats: Seats, numbers: Sequence[int], seed: int) -> Plan:
    tasks = seats.tasks("train")
    return [(tasks[i], EpisodeKey(seed, "faults", tasks[i].id, 0)) for i in numbers]


async def _undisturbed(numbers: Sequence[int], seed: int) -> Mapping[EpisodeKey, Episode]:
    async with InlineSeats(CHAOS) as seats:
        episodes = await gather(seats, Asker(), plan_of(seats, numbers, seed), max_turns=2 * TURNS)
    return {episode.key: episode for episode in episodes}


def _fault_of(found: Episode, undisturbed: Episode) -> str:
    """What is wrong with an episode's record; empty if nothing is."""
    if found.ending in (Ending.ENV_ERROR, Ending.INFRA_ERROR):
        clean = found.success is None and math.isnan(found.outcome) and f"after {found.attempts} att" in found.cause
        return "" if clean else f"an error became a result: {found.cause}"
    same = found.ending is undisturbed.ending and found.last == undisturbed.last
    same = same and found.outcome == undisturbed.outcome and _said(found) == _said(undisturbed)
    return "" if same else f"differs from the undisturbed episode; it ended {found.ending} {found.cause}"


def _said(episode: Episode) -> list[tuple[Any, ...]]:
    return [(turn.observation, turn.action, turn.reward, turn.parts, turn.anchor) for turn in episode.turns]


def left_behind(mark: str, patience: float = 1.0) -> list[str]:
    """Processes that still carry the mark in their name or environment after a moment."""
    deadline = time.monotonic() + patience
    while (found := _marked(mark.encode())) and time.monotonic() < deadline:
        time.sleep(0.02)
    return found


def _marked(mark: bytes) -> list[str]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            text = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
            state = (process / "stat").read_bytes().rpartition(b")")[2].split()[0]
        except OSError:
            continue
        if mark in text and state != b"Z" and int(process.name) != os.getpid():
            found.append(f"{process.name} {text[:60]!r}")
    return found
