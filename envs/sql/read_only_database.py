"""A database in memory on which hostile SQL can do nothing but read, within limits of steps, rows and bytes."""

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from manyturn.envs.sql.schema import Row, Schema

MOST_ROWS = 200
_MOST_STEPS = 500_000  # instructions of SQLite's machine; no honest query on these tables comes near
_STEPS_AT_ONCE = 1_000
_MOST_QUERY, _MOST_VALUE = 2_000, 2_000  # characters of a query, bytes of a value
_LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: _MOST_VALUE,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 2 * _MOST_QUERY,
    sqlite3.SQLITE_LIMIT_COLUMN: 40,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 40,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 8,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 100,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}
FUNCTIONS = frozenset(
    "abs avg coalesce count dense_rank first_value group_concat ifnull iif instr lag last_value lead length like lower "
    "ltrim max min nullif rank replace round row_number rtrim substr substring sum total trim typeof upper".split()
)
"""Functions without effects and without chance."""


class RefusedQuery(ValueError):
    """A query that was not run to its end; the text says why, for the agent."""


class Result(NamedTuple):
    """Result of a query.

    Attributes:
        names: of the columns.
        rows: all of them.
        reads: tables and columns that it read, as SQLite compiled it; the column is empty where only rows were counted.
    """

    names: tuple[str, ...]
    rows: list[Row]
    reads: frozenset[tuple[str, str]]


class ReadOnlyDatabase:
    """The tables of a schema, with rows for each number of a table.

    SQLite's authorizer allows SELECT from these tables, and functions of a list. Writes, ATTACH, PRAGMA, extensions,
    schema tables and virtual tables are refused when a query is compiled. Nothing here reads a clock, so the same query
    ends the same way on every machine.
    """

    def __init__(self, schema: Schema, rows: Mapping[int, Sequence[Row]]):
        self._names = frozenset(table.name.lower() for table in schema.tables)
        # Without cached statements the authorizer sees every query; episodes may move between threads.
        self._link = sqlite3.connect(":memory:", isolation_level=None, cached_statements=0, check_same_thread=False)
        for statement in schema.create_statements():
            self._link.execute(statement)
        for number, filled in rows.items():
            table = schema.tables[number]
            marks = ", ".join("?" * len(table.column_names))
            self._link.executemany(f"INSERT INTO {table.name} VALUES ({marks})", filled)
        for limit, value in _LIMITS.items():
            self._link.setlimit(limit, value)
        self._reads: set[tuple[str, str]] = set()
        self._refusal, self._steps = "", 0
        self._link.set_authorizer(self._authorize)
        self._link.set_progress_handler(self._count, _STEPS_AT_ONCE)

    def run(self, sql: str) -> Result:
        """Run one query. Raises RefusedQuery for anything that is no readable, allowed and short SELECT."""
        if len(sql) > _MOST_QUERY:
            raise RefusedQuery(f"the query has {len(sql):,} characters: use at most {_MOST_QUERY:,}")
        self._reads, self._refusal, self._steps = set(), "", 0
        try:
            cursor = self._link.execute(sql)
            rows = cursor.fetchmany(MOST_ROWS + 1)
            names = tuple(column[0] for column in cursor.description or ())
            cursor.close()
        except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError) as error:
            raise RefusedQuery(self._refusal or f"{error!s:.200}") from None
        if len(rows) > MOST_ROWS:
            raise RefusedQuery(f"the query returns more than {MOST_ROWS} rows: add a condition or a LIMIT")
        if not names:
            raise RefusedQuery("this is no query: write one SELECT")
        named = {table for table, column in self._reads if column}
        return Result(names, rows, frozenset(read for read in self._reads if read[1] or read[0] not in named))

    def close(self) -> None:
        self._link.close()

    def _authorize(self, action: int, first: Any, second: Any, *where: Any) -> int:
        if action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE):
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_READ:
            if str(first).lower() in self._names:
                self._reads.add((str(first).lower(), str(second).lower()))
                return sqlite3.SQLITE_OK
            self._refusal = f"you may not read {first!s:.60}: use list_tables and describe"
        elif action == sqlite3.SQLITE_FUNCTION:
            if str(second).lower() in FUNCTIONS:
                return sqlite3.SQLITE_OK
            self._refusal = f"the function {second!s:.60} is not allowed"
        else:
            self._refusal = "only SELECT is allowed: the database is read-only"
        return sqlite3.SQLITE_DENY

    def _count(self) -> int:
        self._steps += _STEPS_AT_ONCE
        if self._steps < _MOST_STEPS:
            return 0
        self._refusal = "the query takes too many steps: write a shorter one"
        return 1


def shown(result: Result, most: int = 10) -> str:
    """Rows as an agent reads them: names of columns, then a line for each of the first rows."""
    lines = [" | ".join(name[:60] for name in result.names)]
    lines += [" | ".join(_cell(value) for value in row) for row in result.rows[:most]]
    more = len(result.rows) - most
    return "\n".join([*lines, *([f"({more} more rows)"] if more > 0 else [f"({len(result.rows)} rows)"])])


def _cell(value: Any) -> str:
    if value is None:
        return "NULL"
    return f"{value:.6g}" if isinstance(value, float) else f"{value!s:.60}".replace("\n", " ")
