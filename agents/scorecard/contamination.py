"""Overlap of held-out tasks with other texts: the same text once normalised, and long runs of words in common.

Runs of 13 words are those of Brown et al. 2020, "Language Models are Few-Shot Learners", appendix C. Generated tasks
share sentences that say nothing of the problem, so runs that many held-out tasks share are left out.
"""

import csv
import json
import re
import stat
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

RUN_WORDS = 13
OVERLAPS = 0.5  # share of a task's own runs that one text must hold
_TEMPLATE = 0.1  # share of held-out tasks from which on a run of words is the environment's, and no task's
_FEW = 2  # tasks that may share a run in any case
_MOST_BYTES = 2**28  # of a file
_SHOWN = 10


@dataclass(frozen=True)
class Overlap:
    """Overlap of N held-out tasks with the texts of one source.

    Attributes:
        source: ``train``, or a file's name.
        texts: number of texts that were compared with.
        tasks: number of held-out tasks.
        own: held-out tasks that have runs of words of their own; the others can only be compared as a whole.
        same: held-out task -> name of a text that is the same once normalised.
        long: held-out task -> a text that holds at least half of its own runs, and the share.
        solved_alike: of ``same``, the tasks that the expert solves by the same actions; None where that is not known.
    """

    source: str
    texts: int
    tasks: int
    own: int
    same: Mapping[str, str]
    long: Mapping[str, tuple[str, float]]
    solved_alike: int | None = None

    def plain(self) -> dict[str, Any]:
        """JSON values, with the first examples."""
        return {
            **{"source": self.source, "texts": self.texts, "tasks": self.tasks, "own": self.own},
            **{"same": len(self.same), "long": len(self.long), "solved_alike": self.solved_alike},
            "same_examples": dict(list(self.same.items())[:_SHOWN]),
            "long_examples": {task: list(pair) for task, pair in list(self.long.items())[:_SHOWN]},
        }


def normalised(text: str) -> str:
    """Words in small letters with single spaces between them, in Unicode's compatible form.

    Signs stay: ``3 + 4`` and ``3 - 4`` are two problems.

    >>> normalised("  The Maze,\\n\\n#.#  level 3! ")
    'the maze, #.# level 3!'
    """
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def overlap(source: str, held_out: Mapping[str, str], texts: Iterable[tuple[str, str]]) -> Overlap:
    """Compare held-out tasks with texts.

    Args:
        held_out: task id -> its text.
        texts: name and text of each; read once.
    """
    words = {task: normalised(text) for task, text in held_out.items()}
    whole = defaultdict[str, list[str]](list)
    for task, text in words.items():
        if text:
            whole[text].append(task)
    runs = _own_runs(words)
    holders = defaultdict[int, list[str]](list)
    for task, own in runs.items():
        for run in own:
            holders[run].append(task)
    same, long, count = dict[str, str](), dict[str, tuple[str, float]](), 0
    for name, text in texts:
        count += 1
        plain = normalised(text)
        for task in whole.get(plain, ()):
            same.setdefault(task, name)
        shared = Counter(task for run in set(_runs(plain)) for task in holders.get(run, ()))
        for task, number in shared.items():
            share = number / len(runs[task])
            if share >= OVERLAPS and share > long.get(task, ("", 0.0))[1]:
                long[task] = (name, round(share, 3))
    return Overlap(source, count, len(held_out), sum(bool(own) for own in runs.values()), same, long)


def _own_runs(words: Mapping[str, str]) -> dict[str, set[int]]:
    """Hashes of each task's runs of words without those that many tasks share."""
    runs = {task: set(_runs(text)) for task, text in words.items()}
    times = Counter(run for own in runs.values() for run in own)
    most = max(_FEW, _TEMPLATE * len(words))
    return {task: {run for run in own if times[run] <= most} for task, own in runs.items()}


def _runs(text: str) -> Iterator[int]:
    words = text.split()
    return (hash(tuple(words[i : i + RUN_WORDS])) for i in range(len(words) - RUN_WORDS + 1))


def texts_of(file: Path) -> Sequence[tuple[str, str]]:
    """Texts of a file, with their record: strings of lines of JSON, of a JSON list, cells of CSV, or passages.

    Passages of a plain text lie between blank lines.

    Raises:
        ValueError: it is no regular file, too large, or has no text.
    """
    try:
        about = file.stat()
    except OSError as error:
        raise ValueError(f"--known {file}: {error.strerror}: name a text, JSON, JSON lines or CSV file") from None
    if not stat.S_ISREG(about.st_mode) or about.st_size > _MOST_BYTES:
        raise ValueError(f"--known {file}: name a regular file of at most {_MOST_BYTES >> 20} MB; split a larger one")
    text = file.read_text(encoding="utf-8", errors="replace")
    try:
        records = _records(file.suffix.lower(), text)
    except (ValueError, RecursionError, csv.Error) as error:
        raise ValueError(f"--known {file}: {type(error).__name__} in it: fix it, or name it .txt") from None
    named = [
        (f"{file.name}:{number}", one) for number, record in enumerate(records, 1) for one in record if one.strip()
    ]
    if not named:
        raise ValueError(f"--known {file} has no text: name the file that holds the data")
    return named


def _records(kind: str, text: str) -> list[list[str]]:
    """The texts of each record."""
    if kind in (".jsonl", ".ndjson"):
        return [list(_strings(json.loads(line))) for line in text.splitlines() if line.strip()]
    if kind == ".json":
        data = json.loads(text)
        return [list(_strings(record)) for record in (data if isinstance(data, list) else [data])]
    if kind in (".csv", ".tsv"):
        return list(csv.reader(text.splitlines(), delimiter="\t" if kind == ".tsv" else ","))
    return [[passage] for passage in re.split(r"\n\s*\n", text)]


def _strings(value: Any) -> Iterator[str]:
    """All strings within a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _strings(inner)
