"""A store of experience: entries in words, as a JSON-lines file that can be read, checked and given to a policy."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from manyturn.envs.contract.atomic_files import replace_text
from manyturn.envs.contract.random_keys import digest

SCHEMA_VERSION = 1
FILE, PAGE = "experience.jsonl", "experience.md"
SHOWN = 3


class ExperienceError(ValueError):
    """A file is no experience, or not the one that it says it is; the text says what to do."""


@dataclass(frozen=True)
class ExperienceEntry:
    """One piece of experience.

    Attributes:
        id: unique within the store.
        text: the words that a policy is shown.
        about: first observation of the task that it is about; empty for a lesson that is always shown.
        task: id of that task; empty for a lesson of several tasks.
        contents: ``Task.content`` of every task that it comes from.
        round: round of the improvement that wrote it.
        success: of the attempt that it is about, where it is about one.
    """

    id: str
    text: str
    about: str = ""
    task: str = ""
    contents: tuple[str, ...] = ()
    round: int = 0
    success: bool | None = None

    def plain(self) -> dict[str, Any]:
        """The entry as a line of the file has it."""
        return {**vars(self), "contents": list(self.contents)}


@dataclass(frozen=True)
class Experience:
    """Entries, and the tasks behind them.

    Attributes:
        entries: in the order in which they are shown.
        seen: ``Task.content`` of every task that was attempted for it, those without an entry included.
        version: rounds that have changed it.
        shown: entries about single tasks that a policy is shown at most, the most similar ones.
        env: the environment that the tasks are of.
        method: name and options of the method that wrote it.
        by_hand: entries were written by hand, so that not all tasks behind them are known.
        trained: ``Task.content`` of every task that the policies which attempted and wrote were trained on.
        retrieval: options of the search for entries about single tasks, if not BM25.
    """

    entries: tuple[ExperienceEntry, ...] = ()
    seen: frozenset[str] = frozenset()
    version: int = 0
    shown: int = SHOWN
    env: str = ""
    method: Mapping[str, Any] = field(default_factory=dict)
    by_hand: bool = False
    trained: frozenset[str] = frozenset()
    retrieval: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        ids = [entry.id for entry in self.entries]
        if twice := next((name for name in ids if ids.count(name) > 1), None):
            raise ExperienceError(f"two entries have the id {twice!r}: give each its own")

    @cached_property
    def hash(self) -> str:
        """Hash of everything that reaches a policy, and of the tasks behind it."""
        lines = [entry.plain() for entry in self.entries]
        trained = [sorted(self.trained)] if self.trained else []
        retrieval = [dict(self.retrieval)] if self.retrieval else []
        by_hand = [self.by_hand, *trained, *retrieval]
        return digest("experience", SCHEMA_VERSION, lines, sorted(self.seen), self.shown, *by_hand)

    @property
    def contents(self) -> frozenset[str]:
        """``Task.content`` of every task that has a part in it."""
        return self.attempted | self.trained

    @property
    def attempted(self) -> frozenset[str]:
        """``Task.content`` of every task that was attempted for it."""
        return self.seen.union(*(entry.contents for entry in self.entries))

    @property
    def facts(self) -> dict[str, Any]:
        """The experience in summaries."""
        counts = {"entries": len(self.entries), "tasks": len(self.attempted)}
        facts = {"hash": self.hash, "version": self.version, **counts, "method": dict(self.method), "env": self.env}
        return facts | ({"by_hand": True} if self.by_hand else {})

    @property
    def label(self) -> str:
        """The experience in the names of policies, by which an interrupted evaluation knows it again."""
        return f"experience {self.hash[:8]}"

    def to_lines(self) -> str:
        """The text of a file; ``from_lines`` undoes it."""
        head = {
            "experience": SCHEMA_VERSION,
            **{"version": self.version, "env": self.env, "method": dict(self.method), "shown": self.shown},
            **{"hash": self.hash, "by_hand": self.by_hand, "seen": sorted(self.seen)},
            **({"trained": sorted(self.trained)} if self.trained else {}),
            **({"retrieval": dict(self.retrieval)} if self.retrieval else {}),
        }
        lines = [head, *(entry.plain() for entry in self.entries)]
        return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)

    @classmethod
    def from_lines(cls, text: str) -> Self:
        """Read the text of a file.

        A file without a head, or with one that has no hash, was written by hand.

        Raises:
            ExperienceError: a line cannot be read, or the hash does not fit.
        """
        plain = [_object(line, number) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
        head: dict[str, Any] = {"experience": SCHEMA_VERSION}
        if plain and "experience" in plain[0]:
            head = plain.pop(0)
        if head["experience"] != SCHEMA_VERSION:
            raise ExperienceError(f"schema version {head['experience']}, this manyturn reads {SCHEMA_VERSION}")
        try:
            experience = cls(
                tuple(_entry(line, number) for number, line in enumerate(plain, 1)),
                frozenset(map(str, head.get("seen", ()))),
                int(head.get("version", 0)),
                int(head.get("shown", SHOWN)),
                str(head.get("env", "")),
                dict(head.get("method", {})),
                by_hand="hash" not in head or bool(head.get("by_hand")),
                trained=frozenset(map(str, head.get("trained", ()))),
                retrieval=dict(head.get("retrieval", {})),
            )
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, ExperienceError):
                raise
            raise ExperienceError(f"this is no experience: {type(error).__name__}: {error}") from error
        if "hash" in head and experience.hash != head["hash"]:
            raise ExperienceError(
                f"its entries give the hash {experience.hash}, its head says {head['hash']}: it was edited, so that "
                "the tasks behind it are unknown. Take the file from where it was made; entries of your own belong "
                'into a file without a head, one {"text": "..."} a line'
            )
        return experience

    def save(self, folder: Path) -> None:
        """Write the file and the page for people into a folder, each completely or not at all."""
        replace_text(folder / FILE, self.to_lines())
        replace_text(folder / PAGE, self.to_markdown())

    def to_markdown(self) -> str:
        """The entries as a page for people."""
        origin = f" by {self.method['name']}" if "name" in self.method else ""
        counts = f"{len(self.entries)} entries from {len(self.attempted)} tasks of {self.env}"
        lines = [f"# Experience, version {self.version}", "", f"{counts}{origin}; hash {self.hash[:8]}.", ""]
        if self.by_hand:
            lines += ["Some entries were written by hand. The tasks behind them are not known.", ""]
        for entry in self.entries:
            task = f", task {entry.task}" if entry.task else ""
            lines += [f"## {entry.id} (round {entry.round}{task})", "", entry.text, ""]
        return "\n".join(lines)


def read_experience(path: Path) -> Experience:
    """Read an experience.

    Args:
        path: the file, or a folder that holds it, such as that of an improvement.

    Raises:
        ExperienceError: there is none, or it is damaged.
    """
    file = path / FILE if path.is_dir() else path
    try:
        return Experience.from_lines(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ExperienceError(f"there is no {file}: manyturn improve makes one") from None
    except (ExperienceError, UnicodeDecodeError) as error:
        raise ExperienceError(f"{file}: {error}") from None


def _object(line: str, number: int) -> dict[str, Any]:
    try:
        plain = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ExperienceError(f"line {number} is no JSON ({error}): write one object a line") from None
    if not isinstance(plain, dict):
        raise ExperienceError(f"line {number} is no object: write one object a line")
    return plain


def _entry(plain: Mapping[str, Any], number: int) -> ExperienceEntry:
    names = ExperienceEntry.__dataclass_fields__
    if odd := [name for name in plain if name not in names]:
        raise ExperienceError(f"entry {number} has {odd[0]!r}, which no entry has: there are {', '.join(names)}")
    text = plain.get("text")
    if not isinstance(text, str) or not text.strip():
        raise ExperienceError(f"entry {number} has no text: give it one")
    return ExperienceEntry(**{"id": str(number), **plain, "contents": tuple(map(str, plain.get("contents", ())))})


def numbered(entries: Sequence[str]) -> str:
    """Texts as a numbered list."""
    return "\n".join(f"{number}. {text}" for number, text in enumerate(entries, 1))
