"""What a model writes as SQL may read the tables and do nothing else, within limits, and is always answered."""

import time

import pytest

from manyturn.envs.sql.env import SQL
from manyturn.envs.sql.read_only_database import ReadOnlyDatabase, RefusedQuery
from manyturn.envs.sql.tasks import DATABASES, database_of
from manyturn.envs.tools.calls import call_text

HOSTILE = (
    "INSERT INTO {t} VALUES (1)",
    "UPDATE {t} SET id = 2",
    "DELETE FROM {t}",
    "DROP TABLE {t}",
    "CREATE TABLE x (a)",
    "CREATE TEMP VIEW v AS SELECT 1",
    "REPLACE INTO {t} SELECT * FROM {t}",
    "WITH a AS (SELECT 1) DELETE FROM {t}",
    "ATTACH DATABASE '/tmp/stolen.db' AS stolen",
    "ATTACH DATABASE ':memory:' AS other",
    "DETACH DATABASE main",
    "VACUUM",
    "VACUUM INTO '/tmp/stolen.db'",
    "PRAGMA table_info({t})",
    "PRAGMA writable_schema = 1",
    "SELECT * FROM pragma_table_info('{t}')",
    "SELECT * FROM sqlite_master",
    "SELECT sql FROM sqlite_schema",
    "SELECT * FROM json_each('[1]')",
    "SELECT load_extension('/tmp/x.so')",
    "SELECT readfile('/etc/passwd')",
    "SELECT writefile('/tmp/x', 'y')",
    "SELECT random()",
    "SELECT randomblob(10)",
    "SELECT zeroblob(1000000000)",
    "SELECT datetime('now')",
    "SELECT CURRENT_TIMESTAMP",
    "SELECT changes()",
    "SELECT sqlite_version()",
    "SELECT printf('%1000000000d', 1)",
    "BEGIN",
    "COMMIT",
    "SAVEPOINT s",
    "ANALYZE",
    "REINDEX",
    "SELECT 1; DROP TABLE {t}",
    "SELECT ?",
    "SELECT 1 \0",
    "\ud800",
    "",
    "   ",
    "-- nothing",
    "not sql",
    "SELECT missing FROM {t}",
    "SELECT CAST(x'ff' AS TEXT)",
)
LARGE = (
    "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT COUNT(*) FROM n",
    "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n",
    "SELECT COUNT(*) FROM {t} a, {t} b, {t} c, {t} d, {t} e, {t} f",
    "SELECT 1 FROM {t} a, {t} b, {t} c",
    "WITH RECURSIVE s(x) AS (SELECT 'a' UNION ALL SELECT x || x FROM s) SELECT MAX(LENGTH(x)) FROM s",
    "SELECT replace(replace(w, 'a', 'bbbbbbbbbbbbbbbbbbbb'), 'b', 'cccccccc') FROM (SELECT 'aaaaaaaaaaaaaaaa' AS w)",
    "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 999999) SELECT group_concat(x) FROM n",
    "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT * FROM n ORDER BY -x",
    "SELECT " + "(" * 500 + "1" + ")" * 500,
    "SELECT " + " + ".join("1" * 300),
    "SELECT '" + "x" * 3_000 + "'",
    " UNION ALL ".join(["SELECT 1"] * 60),
)


@pytest.fixture
def database() -> tuple[ReadOnlyDatabase, str]:
    env = SQL(difficulty="tiny")
    env.reset(options={"task": "train/tiny/0"})
    return database_of(env.task.params, DATABASES[0]), env._schema.tables[0].name


@pytest.mark.parametrize("sql", HOSTILE)
def test_what_does_more_than_read_the_tables_is_refused(database: tuple[ReadOnlyDatabase, str], sql: str) -> None:
    link, table = database
    before = link.run(f"SELECT * FROM {table}")
    with pytest.raises(RefusedQuery):
        link.run(sql.format(t=table))
    assert link.run(f"SELECT * FROM {table}") == before


@pytest.mark.parametrize("sql", LARGE)
def test_what_takes_too_much_is_refused_soon_and_leaves_the_database_usable(
    database: tuple[ReadOnlyDatabase, str], sql: str
) -> None:
    link, table = database
    began = time.process_time()
    with pytest.raises(RefusedQuery):
        link.run(sql.format(t=table))
    assert time.process_time() - began < 3.0
    assert link.run(f"SELECT COUNT(*) FROM {table}").rows[0][0] > 0


def test_reads_are_what_the_engine_compiled_and_not_what_the_text_mentions(
    database: tuple[ReadOnlyDatabase, str],
) -> None:
    link, table = database
    result = link.run(f"WITH t AS (SELECT id AS name FROM {table}) SELECT name, 'city' FROM t -- name")
    assert result.reads == {(table, "id")}
    assert link.run(f"WITH t AS (SELECT id AS name FROM {table}) SELECT name, 'city' FROM t -- name") == result


@pytest.mark.parametrize("tool", ["run_query", "submit"])
def test_a_refused_query_is_an_observation_and_earns_nothing(tool: str) -> None:
    env = SQL(difficulty="tiny", rewards="turns")
    env.reset(options={"task": "train/tiny/0"})
    for sql in (HOSTILE[3], LARGE[0], "\ud800"):
        env.reset(options={"task": "train/tiny/0"})
        action = call_text(tool, sql=sql.format(t=env._schema.tables[0].name))
        text, reward, terminated, _, info = env.step(action)
        assert text.startswith("Error: ") and reward == 0.0
        assert terminated == (tool == "submit" and info["understood"])
        assert not info.get("success")
