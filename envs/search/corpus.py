"""Passages that can be searched; made ones, or those of a file."""

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from manyturn.envs.contract.registration.env_registry import NeedsSetup
from manyturn.envs.contract.registration.regular_file import regular_file
from manyturn.envs.shop.search.bm25_index import Index

K1, B = 1.5, 0.75


class Corpus:
    """Passages under an index. It is shared by all environments of a process: nothing in it changes.

    Args:
        passages: id -> text.
    """

    def __init__(self, passages: Mapping[str, str]):
        self.passages = passages
        self._index = Index(passages, k1=K1, b=B)

    def search(self, query: str, limit: int) -> list[str]:
        """Ids of the passages that fit a query best (BM25), best first."""
        return [name for name, _ in self._index.search(query, limit)]


class Line(NamedTuple):
    """A line of a file, and its place for messages."""

    place: str
    fields: dict[str, Any]

    def text(self, field: str) -> str:
        """A field that has to be there and hold text. Raises ValueError."""
        value = self.fields.get(field)
        if not isinstance(value, str) or not value.strip():
            raise ValueError(f"{self.place}: {field!r} must be a text that is not empty")
        return value

    def texts(self, field: str) -> tuple[str, ...]:
        """A field that holds a list of texts; empty where it is absent. Raises ValueError."""
        value = self.fields.get(field, [])
        if not isinstance(value, list) or not all(isinstance(item, str) and item.strip() for item in value):
            raise ValueError(f"{self.place}: {field!r} must be a list of texts")
        return tuple(value)


def lines_of(path: Path, what: str) -> Iterator[Line]:
    """The lines of a JSON-lines file. Raises NeedsSetup if there is none, ValueError for a line that is no object."""
    try:
        file = regular_file(path, what).open(encoding="utf-8")
    except OSError as error:
        raise NeedsSetup(f"no {what} at {path}: {error.strerror}") from None
    with file:
        for number, line in enumerate(file, 1):
            place = f"{path}, line {number}"
            try:
                fields = json.loads(line) if line.strip() else None
            except (ValueError, RecursionError) as error:
                raise ValueError(f"{place}: this is no JSON ({error})") from None
            if isinstance(fields, dict):
                yield Line(place, fields)
            elif line.strip():
                raise ValueError(f"{place}: write one JSON object a line")


def corpus_at(path: Path) -> Corpus:
    """The corpus of a JSON-lines file with ``id`` and ``text``; read once a process as long as it stays the same."""
    return _read(path, stamp(path))


@lru_cache(maxsize=2)
def _read(path: Path, _: Any) -> Corpus:
    passages = unique((line.text("id"), line.text("text"), line.place) for line in lines_of(path, "corpus"))
    if not passages:
        raise ValueError(f"{path}: the corpus is empty")
    return Corpus(passages)


def unique(entries: Iterable[tuple[str, Any, str]]) -> dict[str, Any]:
    """Id -> value of entries (id, value, place). Raises ValueError for an id that occurs twice."""
    index: dict[str, Any] = {}
    for name, value, place in entries:
        if name in index:
            raise ValueError(f"{place}: the id {name!r} occurs twice")
        index[name] = value
    return index


def stamp(path: Path) -> Any:
    """Fingerprint of a file; None where there is none."""
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size
