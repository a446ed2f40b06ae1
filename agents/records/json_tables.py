"""Tables as packed JSON lines, for which nothing has to be installed.

The first line is the head: table, schema_version, rows, and columns with what they hold. Each further line is a row. A
number that is not finite is its name in quotes, such as "nan". The checksum of gzip covers all of it.
"""

import gzip
import json
import math
import operator
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from manyturn.agents.records.tables import Kind, RecordsError, Row, Schema
from manyturn.envs.contract.durable import replace_file

_BROKEN = (OSError, EOFError, zlib.error, ValueError, LookupError, TypeError, AttributeError, RecursionError)


class JsonTable:
    """Rows in memory, column by column."""

    def __init__(self, columns: Mapping[str, list[Any]], n_rows: int):
        self._columns, self._n_rows = columns, n_rows

    def __len__(self) -> int:
        return self._n_rows

    def column(self, name: str) -> list[Any]:
        return list(self._columns[name])

    def columns(self) -> dict[str, list[Any]]:
        return {name: list(values) for name, values in self._columns.items()}

    def rows(self) -> list[Row]:
        values = zip(*self._columns.values(), strict=True)
        return [dict(zip(self._columns, row, strict=True)) for row in values]

    def take(self, places: Sequence[int]) -> "JsonTable":
        return JsonTable({name: [v[place] for place in places] for name, v in self._columns.items()}, len(places))

    def cut(self, first: int, end: int) -> "JsonTable":
        return self.take(range(*slice(first, end).indices(self._n_rows)))


class JsonFile:
    """See ``TableFile``."""

    def __init__(self, path: Path, schema: Schema):
        self._path = path
        try:
            with gzip.open(path) as file:
                head = json.loads(file.readline())
            self._kinds: dict[str, Kind] = dict(head["columns"])
            self.names, self.n_rows = list(self._kinds), operator.index(head["rows"])
            table, version = head["table"], head["schema_version"]
        except _BROKEN as error:
            raise _damaged(path, error) from error
        if (table, version) != (schema.table, schema.version):
            raise RecordsError(
                f"{path} holds {table} of schema version {version}, not {schema.table} of version {schema.version}: "
                "read it with the manyturn that wrote it"
            )
        odd = next((name for name, kind in self._kinds.items() if schema.kinds.get(name, kind) != kind), None)
        if odd is not None:
            raise _damaged(path, f"the column {odd!r} is not as it was written")

    def read(self, columns: Sequence[str] | None = None) -> JsonTable:
        wanted = self.names if columns is None else list(columns)
        found: dict[str, list[Any]] = {name: [] for name in wanted}
        readers = {name: _READERS.get(self._kinds[name]) for name in wanted}
        n_rows = 0
        try:
            with gzip.open(self._path) as file:
                file.readline()
                for line in file:
                    row, n_rows = json.loads(line), n_rows + 1
                    for name, read in readers.items():
                        value = row[name]
                        found[name].append(value if read is None or value is None else read(value))
        except _BROKEN as error:
            raise _damaged(self._path, error) from error
        if n_rows != self.n_rows:
            raise _damaged(self._path, f"it has {n_rows} of {self.n_rows} rows")
        return JsonTable(found, n_rows)


def open_file(path: Path, schema: Schema) -> JsonFile:
    """See ``tables.open_table``."""
    return JsonFile(path, schema)


def write_file(path: Path, rows: Iterable[Row], schema: Schema) -> None:
    """See ``tables.write_table``."""
    lines = [_line(path, row, schema) for row in rows]
    head = {
        "table": schema.table,
        "schema_version": schema.version,
        "rows": len(lines),
        "columns": dict(schema.kinds),
    }
    text = "".join(line + "\n" for line in (_said(head), *lines))
    packed = gzip.compress(text.encode(), mtime=0)  # without a time, the same rows are the same bytes
    replace_file(path, lambda aside: aside.write_bytes(packed))


def _line(path: Path, row: Row, schema: Schema) -> str:
    plain: Row = {}
    for name, kind in schema.kinds.items():
        try:
            plain[name] = None if row[name] is None else _WRITERS[kind](row[name])
        except (TypeError, ValueError, OverflowError) as error:
            raise RecordsError(f"{path}: a value does not fit its column: {name}: {error}") from error
    return _said(plain)


def _said(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    value.encode()
    return value


def _int(value: Any) -> int:
    number = operator.index(value)
    if isinstance(value, bool) or not -(2**63) <= number < 2**63:
        raise ValueError(f"{value!r} is no number of 64 bits")
    return number


def _float(value: Any) -> float | str:
    if isinstance(value, str | bool):
        raise TypeError(f"{value!r} is no number")
    number = float(value)
    return number if math.isfinite(number) else repr(number)


def _flag(value: Any) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{value!r} is neither true nor false")
    return bool(value)


def _float32(value: Any) -> float | str | None:
    return None if value is None else _float(np.float32(value))


_WRITERS: dict[Kind, Callable[[Any], Any]] = {
    "text": _text,
    "int": _int,
    "float": _float,
    "flag": _flag,
    "texts": lambda value: [_text(one) for one in value],
    "float32s": lambda value: [_float32(one) for one in value],
    "figures": lambda value: {_text(name): None if one is None else _float(one) for name, one in value.items()},
}


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


_READERS: dict[Kind, Callable[[Any], Any]] = {
    "float": float,
    "float32s": lambda value: [_number(one) for one in value],
    "figures": lambda value: {name: _number(one) for name, one in value.items()},
}


def _damaged(path: Path, why: object) -> RecordsError:
    return RecordsError(f"{path} is not an intact file of packed JSON lines ({why}): restore it, or make it again")
