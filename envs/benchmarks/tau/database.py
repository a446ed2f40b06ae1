"""A database that all episodes share, and each episode's own copies of the few records that it changes."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

Record = dict[str, Any]


def copied(value: Any) -> Any:
    """A copy of plain JSON data, five times faster than ``copy.deepcopy``."""
    kind = type(value)
    if kind is dict:
        return {key: copied(part) for key, part in value.items()}
    if kind is list:
        return [copied(part) for part in value]
    return value


@dataclass(frozen=True)
class Style:
    """The text form of a database of which a benchmark takes the SHA-256.

    Args:
        record: a record -> its text.
        entry: key, a record's text -> the record's text within its table.
        table: texts of the records -> text of the table.
        whole: names and texts of the tables, sorted -> text of the database.
        by_key: whether a table's records are sorted by their keys.
    """

    record: Callable[[Any], str]
    entry: Callable[[str, str], str]
    table: Callable[[list[str]], str]
    whole: Callable[[list[tuple[str, str]]], str]
    by_key: bool = True


class FrozenTable:
    """Records that nobody changes, with their texts kept once they were asked for."""

    def __init__(self, records: Mapping[str, Record], style: Style):
        self.records = records
        self.style = style
        self._shown: dict[str, str] = {}
        self._texts: dict[str, str] = {}
        self._entries: list[tuple[str, str]] | None = None
        self._whole: str | None = None

    def shown(self, key: str) -> str:
        """The record as a tool shows it."""
        text = self._shown.get(key)
        if text is None:
            text = self._shown[key] = json.dumps(self.records[key])
        return text

    def text(self, key: str) -> str | None:
        """The record as the digest takes it, None if there is none."""
        text = self._texts.get(key)
        if text is None and key in self.records:
            text = self._texts[key] = self.style.record(self.records[key])
        return text

    def entries(self) -> list[tuple[str, str]]:
        """Keys and entries in the digest's order."""
        if self._entries is None:
            keys = sorted(self.records) if self.style.by_key else list(self.records)
            self._entries = [(key, self.style.entry(key, self.text(key) or "")) for key in keys]
        return self._entries

    def whole(self) -> str:
        """The table as the digest takes it."""
        if self._whole is None:
            self._whole = self.style.table([text for _, text in self.entries()])
        return self._whole


class Table:
    """One episode's view of a table: reads fall through to the shared records, ``edit`` copies one first."""

    def __init__(self, frozen: FrozenTable):
        self.frozen = frozen
        self.own: dict[str, Record] = {}

    def __contains__(self, key: object) -> bool:
        return key in self.own or key in self.frozen.records

    def __getitem__(self, key: str) -> Record:
        """The record, to be read only. Raises KeyError."""
        return self.own[key] if key in self.own else self.frozen.records[key]

    def __setitem__(self, key: str, record: Record) -> None:
        self.own[key] = record

    def __iter__(self) -> Iterator[str]:
        """The keys: the shared ones in the file's order, then new ones."""
        yield from self.frozen.records
        yield from (key for key in self.own if key not in self.frozen.records)

    def edit(self, key: str) -> Record:
        """The episode's own copy of the record. Raises KeyError."""
        if key not in self.own:
            self.own[key] = copied(self.frozen.records[key])
        return self.own[key]

    def shown(self, key: str) -> str:
        """The record as JSON. Raises KeyError."""
        return json.dumps(self.own[key]) if key in self.own else self.frozen.shown(key)

    def text(self, key: str) -> str | None:
        return self.frozen.style.record(self.own[key]) if key in self.own else self.frozen.text(key)

    def whole(self) -> str:
        """The table as the digest takes it."""
        if not self.own:
            return self.frozen.whole()
        style, own, records = self.frozen.style, self.own, self.frozen.records
        entries = [
            (key, style.entry(key, self.text(key) or "") if key in own else text) for key, text in self.frozen.entries()
        ]
        entries += [(key, style.entry(key, self.text(key) or "")) for key in own if key not in records]
        return style.table([text for _, text in (sorted(entries) if style.by_key else entries)])


@dataclass(eq=False)
class Base:
    """A shared database.

    Args:
        tables: name -> key -> record; never changed.
        style: of its digest.
        notes: what tools look up often, made once by ``once``.
    """

    tables: Mapping[str, Mapping[str, Record]]
    style: Style
    notes: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.frozen = {name: FrozenTable(records, self.style) for name, records in self.tables.items()}

    def once(self, name: str, make: Callable[[Mapping[str, Mapping[str, Record]]], Any]) -> Any:
        """The result of ``make`` for the tables, made at the first call."""
        if name not in self.notes:
            self.notes[name] = make(self.tables)
        return self.notes[name]


class Database:
    """One episode's view of a shared database."""

    def __init__(self, base: Base):
        self.base = base
        self.tables = {name: Table(frozen) for name, frozen in base.frozen.items()}

    def __getitem__(self, name: str) -> Table:
        return self.tables[name]

    def same(self, other: "Database") -> bool:
        """True if the digests of two views of one base are equal; only records that either has touched are compared."""
        for name, mine in self.tables.items():
            theirs = other.tables[name]
            for key in mine.own.keys() | theirs.own.keys():
                if mine.text(key) != theirs.text(key):
                    return False
        return True

    def digest(self) -> str:
        """The benchmark's own hash of the whole database, 64 hexadecimal digits."""
        text = self.base.style.whole([(name, self.tables[name].whole()) for name in sorted(self.tables)])
        return hashlib.sha256(text.encode()).hexdigest()

    def save(self) -> dict[str, dict[str, Record]]:
        """The touched records."""
        return {name: copied(table.own) for name, table in self.tables.items() if table.own}

    def load(self, state: Mapping[str, Mapping[str, Record]]) -> None:
        """Inverse of ``save``."""
        for name, table in self.tables.items():
            table.own = copied(dict(state.get(name, {})))


# ---- styles ------------------------------------------------------------------------------------------------------


def _as_tuples(value: Any) -> Any:
    if isinstance(value, dict):
        return tuple((key, _as_tuples(part)) for key, part in sorted(value.items()))
    if isinstance(value, list):
        return tuple(map(_as_tuples, value))
    return value


def _tuple(parts: list[str]) -> str:
    """A tuple of these parts as Python writes it."""
    return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


TUPLES = Style(  # tau-bench: str() of nested tuples
    record=lambda record: str(_as_tuples(record)),
    entry=lambda key, text: f"({key!r}, {text})",
    table=_tuple,
    whole=lambda tables: _tuple([f"({name!r}, {text})" for name, text in tables]),
)
OBJECTS = Style(  # tau2-bench: JSON, tables are objects
    record=_json,
    entry=lambda key, text: f"{json.dumps(key)}: {text}",
    table=lambda entries: "{" + ", ".join(entries) + "}",
    whole=lambda tables: "{" + ", ".join(f"{json.dumps(name)}: {text}" for name, text in tables) + "}",
)
ARRAYS = Style(  # tau2-bench's telecom: JSON, tables are arrays
    record=_json,
    entry=lambda _, text: text,
    table=lambda entries: "[" + ", ".join(entries) + "]",
    whole=OBJECTS.whole,
    by_key=False,
)
