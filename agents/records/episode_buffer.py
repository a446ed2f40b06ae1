"""A buffer of episodes next to a run: files, and an index of them in the run's state.

Each episode is one JSON file that nothing changes, named after the step that drew it and the hash of its bytes. The
index has the order. It is plain values, part of every checkpoint, so that a run which was killed reads the same
episodes again. A file goes once no checkpoint names it any more.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from manyturn.agents.play.episode import Episode
from manyturn.agents.records.plain_episode import episode_from_plain, episode_to_plain
from manyturn.envs.contract.atomic_files import replace_text
from manyturn.envs.contract.credential_mask import masked
from manyturn.envs.contract.tasks.task import Task

FOLDER = "buffer"
_SUFFIX = ".json"


class BufferDamaged(RuntimeError):
    """A file of the buffer is missing or damaged; the text says how to fix it."""


class StoredEpisode(NamedTuple):
    """An entry of the index.

    Attributes:
        content: hash of the episode's task.
        task: id of that task.
        sha256: of the file's bytes.
        step: that drew the episode; 0: it was there before the first one.
    """

    content: str
    task: str
    sha256: str
    step: int

    @property
    def file(self) -> str:
        """The file's name."""
        return f"{self.step:06d}-{self.sha256[:16]}{_SUFFIX}"


class EpisodeBuffer:
    """The episodes of an index, and new ones.

    Args:
        run: the run's folder.
        rows: the index, oldest first.
    """

    def __init__(self, run: Path, rows: Iterable[Sequence[Any]] = ()):
        self.folder = run / FOLDER
        self.stored = [StoredEpisode(*row) for row in rows]

    def of(self, task: Task) -> list[StoredEpisode]:
        """The entries of a task, oldest first."""
        return [entry for entry in self.stored if entry.content == task.content]

    def read(self, entry: StoredEpisode, task: Task) -> Episode:
        """The episode of an entry, as one of this task, which has the same content. Raises BufferDamaged."""
        plain = json.loads(self._text(entry))
        seed, stage, _, member = plain["key"]
        return episode_from_plain({**plain, "key": [seed, stage, task.id, member]}, task)

    def check(self) -> None:
        """Raise BufferDamaged unless all files are there, unchanged."""
        for entry in self.stored:
            self._text(entry)

    def _text(self, entry: StoredEpisode) -> str:
        path = self.folder / entry.file
        data = path.read_bytes() if path.is_file() else b""
        if hashlib.sha256(data).hexdigest() != entry.sha256:
            raise BufferDamaged(
                f"{path} is missing or differs from what the run stored: restore it, or start another run"
            )
        return data.decode()

    def add(self, episode: Episode, step: int) -> None:
        """Store an episode. What its clock measured is left out, so that the file follows from the run's seed."""
        timeless = replace(episode, turns=[replace(turn, seconds=(0.0, 0.0)) for turn in episode.turns])
        self.put(masked(json.dumps(episode_to_plain(timeless), separators=(",", ":"))), episode.task, step)

    def put(self, text: str, task: Task, step: int) -> None:
        """Store an episode that is a text already."""
        entry = StoredEpisode(task.content, task.id, hashlib.sha256(text.encode()).hexdigest(), step)
        self.folder.mkdir(exist_ok=True)
        if not (self.folder / entry.file).is_file():
            replace_text(self.folder / entry.file, text)
        self.stored.append(entry)

    def texts(self) -> list[tuple[StoredEpisode, str]]:
        """Every entry with its text. Raises BufferDamaged."""
        return [(entry, self._text(entry)) for entry in self.stored]

    def bound(self, per_task: int, size: int) -> None:
        """Leave the newest ``per_task`` entries of each task, and of these the newest ``size``."""
        self.stored = newest(self.stored, per_task, size)

    @property
    def rows(self) -> list[list[Any]]:
        """The index as plain values."""
        return [list(entry) for entry in self.stored]


def newest(entries: Sequence[StoredEpisode], per_task: int, size: int) -> list[StoredEpisode]:
    """The newest ``per_task`` entries of each task, and of these the newest ``size``, oldest first.

    >>> entries = [StoredEpisode(task, task, "", step) for step, task in enumerate("aabab")]
    >>> [entry.step for entry in newest(entries, per_task=2, size=3)]
    [2, 3, 4]
    """
    chosen, counts = list[StoredEpisode](), dict[str, int]()
    for entry in reversed(entries):
        counts[entry.content] = counts.get(entry.content, 0) + 1
        if counts[entry.content] <= per_task and len(chosen) < size:
            chosen.append(entry)
    return chosen[::-1]


def remove_unnamed(run: Path) -> None:
    """Remove the files that no checkpoint names, as far as they are not newer than the newest one."""
    if not (run / FOLDER).is_dir():
        return
    named, last = set[str](), -1
    for file in run.glob("checkpoints/step_*/state.json"):
        state = json.loads(file.read_text(encoding="utf-8"))
        named |= {StoredEpisode(*row).file for row in state.get("stored", ())}
        last = max(last, state["step"])
    for file in (run / FOLDER).glob(f"*{_SUFFIX}"):
        if file.name not in named and int(file.name.partition("-")[0]) <= last:
            file.unlink()
