"""The journals of episodes that are played ahead, one for each step, and what of them holds after a kill.

A run goes on from its last checkpoint. The steps after it that had been learnt from have complete journals, or a file
that says which groups they chose, and are learnt from again: on a CPU to the same bits, since an update follows from
the episodes alone. So episodes of later steps are still of weights that this run has had, or will have. Where a journal
is damaged the run comes to other weights than before; episodes that were drawn with those are played again.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from manyturn.agents.play.episode import Ending, Episode
from manyturn.agents.records.episode_log import Journal, JournalError
from manyturn.agents.records.episode_rows import SCHEMA_VERSION
from manyturn.agents.records.plain_episode import episode_from_plain, episode_to_plain
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.envs.contract.tasks.task import Task
from manyturn.trainers.play.order.schedule import EpisodePlace, GroupPlace, Past, StepChoice
from manyturn.trainers.record.run_folder import RunFolder

_SETTINGS = {"order": "asynchronous", "schema_version": SCHEMA_VERSION}


class Journals:
    """Open journals of steps that are not learnt from yet.

    Args:
        past: steps that are done, and what is left of those that tasks were drawn for.
        count: episodes of a step.
        allowed: how many of them may end in an error.
        groups: of a step.
        chosen: whether a step learns from other groups than those that were drawn for it: which ones, is kept too.

    Attributes:
        ended: the episodes that are there and left, with the steps that were done when each began and ended.
        past: the same as was given, with these episodes, and with the choices that hold again.
    """

    def __init__(
        self, folder: RunFolder, past: Past, count: int, allowed: int, groups: int = 1, *, chosen: bool = False
    ):
        self._folder, self._open, self._group = folder, dict[int, Journal](), count // groups
        self._chosen = chosen
        read = {
            step: {n: entry for n, entry in entries.items() if self._group_of(step, n) not in past.gone}
            for step, entries in _read(folder, past.first)
        }
        choices, reached = list[StepChoice](), past.done
        if chosen:
            choices = self._choices(past.done, read)
            reached += len(choices)
        else:
            while _is_complete(read.get(past.first + reached - past.done, {}), count, allowed):
                reached += 1
        learnt = {group for choice in choices for group in choice.learnt}
        self._entries = dict[int, dict[int, dict[str, Any]]]()
        self.ended = dict[EpisodePlace, tuple[int, int]]()
        for step, entries in read.items():
            # What ended in an error is tried again, unless a step may have been learnt from with it.
            current = {
                n: entry
                for n, entry in entries.items()
                if entry["done"][1] <= reached
                and (
                    not _is_error(entry)
                    or (self._group_of(step, n) in learnt if chosen else step - past.first < reached - past.done)
                )
            }
            if len(current) < len(entries):
                self._rewrite(step, current)
            self._entries[step] = current
            for number, entry in current.items():
                began, ended = entry["done"]
                self.ended[EpisodePlace(step, number)] = (began, ended)
        self.past = replace(past, ended={place: began for place, (began, _) in self.ended.items()}, choices=choices)

    def _group_of(self, step: int, number: int) -> GroupPlace:
        return GroupPlace(step, number // self._group)

    def _choices(self, done: int, read: Mapping[int, Mapping[int, Any]]) -> list[StepChoice]:
        """The groups that the steps after ``done`` learnt from, as far as recorded; later choices are dropped."""
        there = Counter(self._group_of(step, number) for step, entries in read.items() for number in entries)
        files, choices = sorted(self._folder.choice_file(0).parent.glob("step_*_choice.jsonl")), list[StepChoice]()
        for file in files:
            step = int(file.stem.split("_")[1])
            entries = _entries(file) if step == done + len(choices) + 1 else []
            choice = (
                StepChoice(*([GroupPlace(*group) for group in entries[0][name]] for name in StepChoice._fields))
                if entries
                else None
            )
            if choice is not None and all(there[group] == self._group for group in choice.learnt):
                choices.append(choice)
            else:
                file.unlink(missing_ok=True)
        return choices

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
                path, key = self._folder.journal_file(step), EpisodeKey(*entry["key"])
                raise JournalError(
                    f"{path} has an episode of {key.task}, and {plan[number][0].id} is to be played: "
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

    def _sync(self, step: int) -> None:
        if journal := self._open.pop(step, None):
            with self._folder.writing():
                journal.__exit__(None, None, None)

    def choose(self, step: int, choice: StepChoice) -> None:
        """The disk has what a step is learnt from before it is, and which groups these are where that is a choice."""
        for drawn_for in sorted({group.step for group in choice.learnt}):
            self._sync(drawn_for)
        path = self._folder.choice_file(step)
        if self._chosen and not path.exists():
            with self._folder.writing(), Journal(path, _SETTINGS) as journal:
                journal.append(choice._asdict())

    def close(self) -> None:
        for step in list(self._open):
            self._sync(step)


def _read(folder: RunFolder, first: int) -> Iterator[tuple[int, dict[int, dict[str, Any]]]]:
    """The step and the entries, by number, of each journal of a step from the first one on."""
    for path in sorted(folder.journal_file(0).parent.glob("step_*_00.jsonl")):
        step = int(path.stem.split("_")[1])
        if step >= first:
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
