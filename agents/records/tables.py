"""Tables on disk: rows of a fixed schema, as Parquet files. pyarrow is imported when a table is first used."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from manyturn.envs.contract.atomic_files import replace_file
from manyturn.envs.contract.credential_mask import masked_value

if TYPE_CHECKING:
    import pyarrow as pa

Row = dict[str, Any]
Kind = Literal["text", "int", "float", "flag", "texts", "float32s", "figures"]
"""Type of a column: int and float have 64 bits, texts and float32s are lists, figures are floats by name."""


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


@cache
def _types() -> "dict[Kind, pa.DataType]":
    import pyarrow as pa

    return {
        "text": pa.string(),
        "int": pa.int64(),
        "float": pa.float64(),
        "flag": pa.bool_(),
        "texts": pa.list_(pa.string()),
        "float32s": pa.list_(pa.float32()),
        "figures": pa.map_(pa.string(), pa.float64()),
    }


@cache
def _read_errors() -> tuple[type[Exception], ...]:
    """Errors that pyarrow raises for a damaged file; ValueError is one of names that are no text."""
    import pyarrow as pa

    return (pa.ArrowException, OSError, ValueError, KeyError)


class Table:
    """Some rows of a file, in memory."""

    def __init__(self, table: "pa.Table"):
        self._table = table

    def __len__(self) -> int:
        return self._table.num_rows

    def column(self, name: str) -> list[Any]:
        return self._table[name].to_pylist(maps_as_pydicts="strict")

    def columns(self) -> dict[str, list[Any]]:
        return self._table.to_pydict(maps_as_pydicts="strict")

    def rows(self) -> list[Row]:
        return self._table.to_pylist(maps_as_pydicts="strict")

    def take(self, places: Sequence[int]) -> "Table":
        """The rows at these places."""
        import pyarrow as pa

        return Table(self._table.take(pa.array(places, pa.int64())))

    def cut(self, first: int, end: int) -> "Table":
        """The rows from ``first`` up to ``end``."""
        return Table(self._table.slice(first, end - first))


class TableFile:
    """A file whose head has been read.

    Attributes:
        names: its columns; those of the schema come first.
        n_rows: number of rows.
    """

    def __init__(self, path: Path, schema: Schema):
        import pyarrow.parquet as pq

        self._path, self._schema = path, schema
        try:
            with pq.ParquetFile(path) as file:
                self.names: list[str] = file.schema_arrow.names
                self.n_rows: int = file.metadata.num_rows
                metadata = file.schema_arrow.metadata or {}
        except _read_errors() as error:
            raise _damaged(path, error) from error
        table, version = (metadata.get(key, b"?").decode(errors="replace") for key in (b"table", b"schema_version"))
        if (table, version) != (schema.table, str(schema.version)):
            raise RecordsError(
                f"{path} holds {table} of schema version {version}, not {schema.table} of version {schema.version}: "
                "read it with the manyturn that wrote it"
            )
        # Checksums cover pages of values, and not the numbers of rows that a file states.
        if metadata.get(b"rows") != str(self.n_rows).encode():
            raise _damaged(path, "it does not have the rows that were written")

    def read(self, columns: Sequence[str] | None = None) -> Table:
        """All rows; raises RecordsError if the file is damaged."""
        import pyarrow.parquet as pq

        try:
            with pq.ParquetFile(self._path, page_checksum_verification=True) as file:
                table = file.read(None if columns is None else list(columns))
            table.validate(full=True)  # a flipped bit may leave text that is none
        except _read_errors() as error:
            raise _damaged(self._path, error) from error
        if table.num_rows != self.n_rows:
            raise _damaged(self._path, f"{table.num_rows} of its {self.n_rows} rows can be read")
        # No checksum covers a file's own description of its columns.
        for name in self._schema.names if columns is None else columns:
            kind = self._schema.kinds.get(name)
            if name not in table.schema.names or (kind and table.schema.field(name).type != _types()[kind]):
                raise _damaged(self._path, f"the column {name!r} is not as it was written")
        return Table(table)


def open_table(path: Path, schema: Schema) -> TableFile:
    """Open a file for reading.

    Raises:
        RecordsError: it is damaged, of another kind or version, or it lacks a column of the schema.
    """
    file = TableFile(path, schema)
    if missing := [name for name in schema.names if name not in file.names]:
        raise RecordsError(f"{path} has no column {missing[0]!r}: make it again")
    return file


def write_table(path: Path, rows: Sequence[Row], schema: Schema) -> None:
    """Write rows to a file without secrets, completely or not at all.

    Raises:
        RecordsError: a row has other columns than the schema, or a value that does not fit.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = set(schema.names)
    needed = names - schema.nullable
    for row in rows:
        if row.keys() != names:
            raise RecordsError(f"{path}: columns {sorted(row.keys() ^ names)} are in the row or the schema only")
        if lacking := [name for name in needed if row[name] is None]:
            raise RecordsError(f"{path}: the column {min(lacking)!r} has a row without a value")
    fields = [pa.field(name, _types()[kind], nullable=name in schema.nullable) for name, kind in schema.kinds.items()]
    metadata = {"schema_version": str(schema.version), "table": schema.table, "rows": str(len(rows))}
    try:
        table = pa.Table.from_pylist(masked_value(list(rows)), schema=pa.schema(fields, metadata=metadata))
    except (pa.ArrowException, OverflowError) as error:
        raise RecordsError(f"{path}: a value does not fit its column: {error}") from error
    replace_file(path, lambda aside: pq.write_table(table, aside, compression="zstd", write_page_checksum=True))


def table_in(folder: Path, table: str) -> Path:
    """Path of a folder's table, such as ``episodes.parquet``."""
    return folder / f"{table}.parquet"


def _damaged(path: Path, why: object) -> RecordsError:
    return RecordsError(f"{path} is not an intact Parquet file ({why}): restore it, or make it again")
