"""The journals of episodes that are played ahead, one for each step, and what of them holds after a kill.

A run goes on from its last checkpoint. The steps after it that had been learnt from have complete journals, and are
learnt from again: on a CPU to the same bits, since an update follows from the episodes alone. So episodes of later
steps are still of weights that this run has had, or will have. Where a journal is damaged the run comes to other
weights than before; episodes that were drawn with those are played again.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from manyturn.agents.episode import Ending, Episode
from manyturn.agents.episode_key import EpisodeKey
from manyturn.agents.journal import Journal, JournalError
from manyturn.agents.recorded import episode_from_plain, episode_to_plain
from manyturn.agents.records import SCHEMA_VERSION
from manyturn.envs.contract.task import Task
from manyturn.trainers.play.schedule import EpisodePlace
from manyturn.trainers.record.run_folder import RunFolder

_SETTINGS = {"order": "asynchronous", "schema_version": SCHEMA_VERSION}


class Journals:
    """Open journals of steps that are not learnt from yet.

    Args:
        done: steps that are done.
        count: episodes of a step.
        allowed: how many of them may end in an error.

    Attributes:
        found: the episodes of later steps that are there, with the steps that were done when each began and ended.
    """

    def __init__(self, folder: RunFolder, done: int, count: int, allowed: int):
        self._folder, self._open = folder, dict[int, Journal]()
        read = dict(_read(folder, done))
        reached = done
        while _is_complete(read.get(reached + 1, {}), count, allowed):
            reached += 1
        self._entries = dict[int, dict[int, dict[str, Any]]]()
        self.found = dict[EpisodePlace, tuple[int, int]]()
        for step, entries in read.items():
            # What ended in an error is tried again, unless its step may have been learnt from with it.
            kept = {
                number: entry
                for number, entry in entries.items()
                if entry["done"][1] <= reached and (step <= reached or not _is_error(entry))
            }
            if len(kept) < len(entries):
                self._rewrite(step, kept)
            self._entries[step] = kept
            for number, entry in kept.items():
                began, ended = entry["done"]
                self.found[EpisodePlace(step, number)] = (began, ended)

    def _rewrite(self, step: int, entries: dict[int, dict[str, Any]]) -> None:
        path = self._folder.journal_file(step)
        with self._folder.writing():
            path.unlink()
            with Journal(path, _SETTINGS) as journal:
                for entry in entries.values():
                    journal.append(entry)

    def episodes(self, step: int, plan: Sequence[tuple[Task, EpisodeKey]]) -> dict[int, Episode]:
        """Number -> episode of those that are there already."""
        entries = self._entries.pop(step, {})
        for number, entry in entries.items():
            if EpisodeKey(*entry["key"]) != plan[number][1]:
                path, found = self._folder.journal_file(step), EpisodeKey(*entry["key"])
                raise JournalError(
                    f"{path} has an episode of {found.task}, and {plan[number][0].id} is to be played: "
                    "the steps before it have come out otherwise than before the run ended. Remove the folder "
                    f"{path.parent}: what is in it is played again"
                )
        return {number: episode_from_plain(entry, plan[number][0]) for number, entry in entries.items()}

    def append(self, place: EpisodePlace, episode: Episode, began: int, ended: int) -> None:
        """Keep an episode that has ended, with the numbers of steps that were done when it began and ended."""
        with self._folder.writing():
            if place.step not in self._open:
                self._open[place.step] = Journal(self._folder.journal_file(place.step), _SETTINGS)
                self._open[place.step].__enter__()
            entry = {**episode_to_plain(episode), "number": place.number, "done": [began, ended]}
            self._open[place.step].append(entry)

    def sync(self, step: int) -> None:
        """The step is complete: the disk has it before it is learnt from."""
        if journal := self._open.pop(step, None):
            with self._folder.writing():
                journal.__exit__(None, None, None)

    def close(self) -> None:
        for step in list(self._open):
            self.sync(step)


def _read(folder: RunFolder, done: int) -> Iterator[tuple[int, dict[int, dict[str, Any]]]]:
    """The step and the entries, by number, of each journal of a later step."""
    for path in sorted(folder.journal_file(0).parent.glob("step_*.jsonl")):
        step = int(path.stem.split("_")[1])
        if step > done:
            yield step, {entry["number"]: entry for entry in _entries(path)}


def _entries(path: Path) -> list[dict[str, Any]]:
    try:
        with Journal(path, _SETTINGS) as journal:
            return journal.entries
    except JournalError:  # of another order or schema, or damaged at its head: of no use
        path.unlink()
        return []


def _is_error(entry: dict[str, Any]) -> bool:
    return Ending(entry["ending"]).is_error


def _is_complete(entries: dict[int, dict[str, Any]], count: int, allowed: int) -> bool:
    return len(entries) == count and sum(map(_is_error, entries.values())) <= allowed
