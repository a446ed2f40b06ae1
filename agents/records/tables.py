"""Tables on the disk: rows of a fixed schema, in Parquet, or as packed JSON lines where pyarrow is not installed.

A file's name ends in its format. Both formats hold the same values, and a reader does not have to know which it gets.
"""

import importlib
import importlib.util
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Protocol, cast

Row = dict[str, Any]
Kind = Literal["text", "int", "float", "flag", "texts", "float32s", "figures"]
"""What a column holds: int and float have 64 bits, texts and float32s are lists, figures are floats by name."""
PARQUET, JSON_LINES = ".parquet", ".rows.jsonl.gz"
_HOMES = {PARQUET: "manyturn.agents.records.parquet_tables", JSON_LINES: "manyturn.agents.records.json_tables"}


class RecordsError(ValueError):
    """The rows or the file do not fit the schema."""


@dataclass(frozen=True)
class Schema:
    """The columns of a table.

    Attributes:
        table: what its rows are, such as ``episodes``.
        version: of the schema. Files of another version are refused.
        nullable: columns in which a value may be missing.
    """

    table: str
    version: int
    kinds: Mapping[str, Kind]
    nullable: frozenset[str]

    @cached_property
    def names(self) -> list[str]:
        return list(self.kinds)


class Table(Protocol):
    """Some rows of a file, in memory."""

    def __len__(self) -> int: ...

    def column(self, name: str) -> list[Any]: ...

    def columns(self) -> dict[str, list[Any]]: ...

    def rows(self) -> list[Row]: ...

    def take(self, places: Sequence[int]) -> "Table":
        """The rows at these places."""
        ...

    def cut(self, first: int, end: int) -> "Table":
        """The rows from ``first`` up to ``end``."""
        ...


class TableFile(Protocol):
    """A file whose head has been read.

    Attributes:
        names: its columns; those of the schema come first.
        n_rows: how many rows it has.
    """

    names: list[str]
    n_rows: int

    def read(self, columns: Sequence[str] | None = None) -> Table:
        """All rows; raises RecordsError if the file is damaged."""
        ...


def open_table(path: Path, schema: Schema) -> TableFile:
    """Open a file for reading.

    Raises:
        RecordsError: it is damaged, of another kind or version, or it lacks a column of the schema.
    """
    file: TableFile = _format(path).open_file(path, schema)
    if missing := [name for name in schema.names if name not in file.names]:
        raise RecordsError(f"{path} has no column {missing[0]!r}: make it again")
    return file


def write_table(path: Path, rows: Sequence[Row], schema: Schema) -> None:
    """Write rows to a file, completely or not at all.

    Raises:
        RecordsError: a row has other columns than the schema, or a value that does not fit.
    """
    names = set(schema.names)
    needed = names - schema.nullable
    for row in rows:
        if row.keys() != names:
            raise RecordsError(f"{path}: columns {sorted(row.keys() ^ names)} are in the row or the schema only")
        if lacking := [name for name in needed if row[name] is None]:
            raise RecordsError(f"{path}: the column {min(lacking)!r} has a row without a value")
    _format(path).write_file(path, rows, schema)


def replace_table(folder: Path, rows: Sequence[Row], schema: Schema) -> Path:
    """Write a table to a folder in the best format that there is, in place of an earlier one in any format."""
    suffix = PARQUET if importlib.util.find_spec("pyarrow") is not None else JSON_LINES
    path = folder / f"{schema.table}{suffix}"
    write_table(path, rows, schema)
    for other in _HOMES.keys() - {suffix}:
        (folder / f"{schema.table}{other}").unlink(missing_ok=True)
    return path


def table_in(folder: Path, table: str) -> Path:
    """Where a folder's table is, such as ``episodes.parquet``; where it would be, if it is in no format."""
    places = [folder / f"{table}{suffix}" for suffix in _HOMES]
    there = [place for place in places if place.is_file()]
    # There are two only if a writer was killed between writing the new one and removing the old one.
    return max(there, key=lambda place: place.stat().st_mtime_ns, default=places[0])


class _Format(Protocol):
    open_file: Callable[[Path, Schema], TableFile]
    write_file: Callable[[Path, Iterable[Row], Schema], None]


def _format(path: Path) -> _Format:
    suffix = next((suffix for suffix in _HOMES if path.name.endswith(suffix)), None)
    if suffix is None:
        raise RecordsError(f"{path} is no table: its name must end in {' or '.join(_HOMES)}")
    try:
        return cast(_Format, importlib.import_module(_HOMES[suffix]))
    except ModuleNotFoundError as error:
        if error.name != "pyarrow":
            raise
        raise RecordsError(f"{path} is a Parquet file: pip install 'manyturn[parquet]' to read it") from None
