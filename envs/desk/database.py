"""Tables that all episodes share, and what one episode has changed in them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from manyturn.envs.tools.tool import ToolError

Record = Mapping[str, Any]
RecordKey = tuple[str, str]  # table and key


@dataclass(frozen=True)
class Tables:
    """A database that nobody changes.

    Args:
        records: table -> key -> record; a record's values are numbers, texts, tuples, and dicts within tuples.
    """

    records: Mapping[str, Mapping[str, Record]]
    by_email: Mapping[str, str] = field(init=False)
    by_name: Mapping[tuple[str, str], str] = field(init=False)

    def __post_init__(self) -> None:
        users = self.records["users"].items()
        object.__setattr__(self, "by_email", {user["email"]: key for key, user in users})
        object.__setattr__(self, "by_name", {(user["name"], user["zip_code"]): key for key, user in users})


class Store:
    """Tables as one episode has changed them; only the records that were written are copied.

    Args:
        tables: shared, never written.
    """

    __slots__ = ("_new", "tables")

    def __init__(self, tables: Tables):
        self.tables = tables
        self._new: dict[RecordKey, Record] = {}

    def __getitem__(self, place: RecordKey) -> Record:
        new = self._new.get(place)
        return self.tables.records[place[0]][place[1]] if new is None else new

    def find(self, table: str, key: str) -> Record:
        """A record that an agent asks for. Raises ToolError if there is none."""
        if key not in self.tables.records[table]:
            raise ToolError(f"there is no {table[:-1]} {key!r:.80}")
        return self[table, key]

    def change(self, table: str, key: str, **fields: Any) -> Record:
        """Write fields of a record; the record as it is then. Raises ToolError if there is none."""
        record = {**self.find(table, key), **fields}
        self._new[table, key] = record
        return record

    @property
    def written(self) -> bool:
        """True if any record was written."""
        return bool(self._new)

    def delta(self) -> dict[RecordKey, dict[str, Any]]:
        """Changes to the tables: place -> field -> value. Looks at written records only."""
        changes = {}
        for place, record in self._new.items():
            old = self.tables.records[place[0]][place[1]]
            if changed := {name: value for name, value in record.items() if value != old[name]}:
                changes[place] = changed
        return changes

    def save(self) -> list[Any]:
        """The written fields as plain values."""
        return [[*place, changed] for place, changed in self.delta().items()]

    def load(self, saved: Iterable[Any]) -> None:
        """Inverse of ``save``."""
        self._new = {(table, key): {**self[table, key], **_tuples(changed)} for table, key, changed in saved}


def _tuples(value: Any) -> Any:
    """JSON's lists as the tuples that they were."""
    if isinstance(value, list):
        return tuple(map(_tuples, value))
    return {key: _tuples(part) for key, part in value.items()} if isinstance(value, dict) else value
