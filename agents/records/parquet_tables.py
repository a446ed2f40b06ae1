"""Tables as Parquet files."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from manyturn.agents.records.tables import Kind, RecordsError, Row, Schema
from manyturn.envs.contract.durable import replace_file

_TYPES: dict[Kind, pa.DataType] = {
    "text": pa.string(),
    "int": pa.int64(),
    "float": pa.float64(),
    "flag": pa.bool_(),
    "texts": pa.list_(pa.string()),
    "float32s": pa.list_(pa.float32()),
    "figures": pa.map_(pa.string(), pa.float64()),
}
_BROKEN = (pa.ArrowException, OSError, ValueError, KeyError)  # ValueError: names that are no text


class ParquetTable:
    """Rows in memory, as Arrow has them."""

    def __init__(self, table: pa.Table):
        self._table = table

    def __len__(self) -> int:
        return self._table.num_rows

    def column(self, name: str) -> list[Any]:
        return self._table[name].to_pylist(maps_as_pydicts="strict")

    def columns(self) -> dict[str, list[Any]]:
        return self._table.to_pydict(maps_as_pydicts="strict")

    def rows(self) -> list[Row]:
        return self._table.to_pylist(maps_as_pydicts="strict")

    def take(self, places: Sequence[int]) -> "ParquetTable":
        return ParquetTable(self._table.take(pa.array(places, pa.int64())))

    def cut(self, first: int, end: int) -> "ParquetTable":
        return ParquetTable(self._table.slice(first, end - first))


class ParquetFile:
    """See ``TableFile``."""

    def __init__(self, path: Path, schema: Schema):
        self._path, self._schema = path, schema
        try:
            with pq.ParquetFile(path) as file:
                self.names: list[str] = file.schema_arrow.names
                self.n_rows: int = file.metadata.num_rows
                metadata = file.schema_arrow.metadata or {}
        except _BROKEN as error:
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

    def read(self, columns: Sequence[str] | None = None) -> ParquetTable:
        try:
            with pq.ParquetFile(self._path, page_checksum_verification=True) as file:
                found = file.read(None if columns is None else list(columns))
            found.validate(full=True)  # a flipped bit may leave text that is none
        except _BROKEN as error:
            raise _damaged(self._path, error) from error
        if found.num_rows != self.n_rows:
            raise _damaged(self._path, f"{found.num_rows} of its {self.n_rows} rows can be read")
        # No checksum covers a file's own description of its columns.
        for name in self._schema.names if columns is None else columns:
            kind = self._schema.kinds.get(name)
            if name not in found.schema.names or (kind and found.schema.field(name).type != _TYPES[kind]):
                raise _damaged(self._path, f"the column {name!r} is not as it was written")
        return ParquetTable(found)


def open_file(path: Path, schema: Schema) -> ParquetFile:
    """See ``tables.open_table``."""
    return ParquetFile(path, schema)


def write_file(path: Path, rows: Iterable[Row], schema: Schema) -> None:
    """See ``tables.write_table``."""
    fields = [pa.field(name, _TYPES[kind], nullable=name in schema.nullable) for name, kind in schema.kinds.items()]
    written = list(rows)
    metadata = {"schema_version": str(schema.version), "table": schema.table, "rows": str(len(written))}
    try:
        table = pa.Table.from_pylist(written, schema=pa.schema(fields, metadata=metadata))
    except (pa.ArrowException, OverflowError) as error:
        raise RecordsError(f"{path}: a value does not fit its column: {error}") from error
    replace_file(path, lambda aside: pq.write_table(table, aside, compression="zstd", write_page_checksum=True))


def _damaged(path: Path, why: object) -> RecordsError:
    return RecordsError(f"{path} is not an intact Parquet file ({why}): restore it, or make it again")
