"""Tables on disk: a value that is lost, rounded or damaged and read all the same."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manyturn.agents.records.episode_rows import EPISODES, TURNS, turn_schema
from manyturn.agents.records.tables import RecordsError, Schema, open_table, write_table
from manyturn.envs.contract.random_keys import generator

KINDS = ("text", "int", "float", "flag", "texts", "float32s", "figures")
SCHEMA = Schema("odds", 7, {kind: kind for kind in KINDS}, frozenset(KINDS))
FLOATS = st.floats(allow_nan=False)
ROWS = st.fixed_dictionaries(
    {
        "text": st.none() | st.text(st.characters(exclude_categories=["Cs"])),
        "int": st.none() | st.integers(-(2**63), 2**63 - 1),
        "float": st.none() | FLOATS,
        "flag": st.none() | st.booleans(),
        "texts": st.none() | st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=3), max_size=3),
        "float32s": st.none() | st.lists(st.none() | st.floats(width=32, allow_nan=False), max_size=3),
        "figures": st.none() | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=3), FLOATS),
    }
)
ROW = {
    "text": "é\x00\u2028\n😀",
    "int": 3,
    "float": -0.1,
    "flag": True,
    "texts": ["a", "\n"],
    "float32s": [0.5, None],
    "figures": {"b": 1e-300},
}


@settings(max_examples=30, deadline=None)
@given(st.lists(ROWS, max_size=4))
def test_a_table_gives_back_what_was_written(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("tables") / "odds.parquet"
    write_table(path, rows, SCHEMA)
    file = open_table(path, SCHEMA)
    table = file.read()
    assert table.rows() == rows and (file.names, file.n_rows, len(table)) == (list(KINDS), len(rows), len(rows))
    assert table.columns() == {kind: [row[kind] for row in rows] for kind in KINDS}
    assert file.read(["int", "figures"]).columns() == {k: [row[k] for row in rows] for k in ("int", "figures")}
    places = list(range(len(rows)))[::-1]
    assert table.take(places).column("text") == [row["text"] for row in rows[::-1]]
    assert table.cut(1, 3).rows() == rows[1:3]


def test_numbers_that_are_not_finite_and_those_of_32_bits_are_the_same(tmp_path):
    row = ROW | {"float": math.nan, "float32s": [0.1, -math.inf], "figures": {"x": math.inf}}
    write_table(tmp_path / "odds.parquet", [row], SCHEMA)
    [found] = open_table(tmp_path / "odds.parquet", SCHEMA).read().rows()
    assert math.isnan(found["float"]) and found["figures"] == {"x": math.inf}
    assert found["float32s"] == [0.10000000149011612, -math.inf]


@pytest.mark.parametrize(
    "wrong", [{"text": 3}, {"int": 2**63}, {"int": "3"}, {"float": "x"}, {"flag": "yes"}, {"texts": [1]}]
)
def test_a_value_that_does_not_fit_is_refused_and_nothing_is_written(tmp_path, wrong):
    with pytest.raises(RecordsError, match="a value does not fit its column"):
        write_table(tmp_path / "odds.parquet", [ROW, ROW | wrong], SCHEMA)
    assert list(tmp_path.iterdir()) == []


def test_a_flipped_bit_never_changes_what_is_read(tmp_path):
    file, noticed = tmp_path / "odds.parquet", 0
    write_table(file, [ROW] * 5, SCHEMA)
    rng, intact = generator("flips", ".parquet"), file.read_bytes()
    for _ in range(150):
        place, bit = int(rng.integers(len(intact))), int(rng.integers(8))
        file.write_bytes(intact[:place] + bytes([intact[place] ^ 1 << bit]) + intact[place + 1 :])
        try:
            assert open_table(file, SCHEMA).read().rows() == [ROW] * 5, f"bit {bit} of byte {place} of {len(intact)}"
        except RecordsError:
            noticed += 1
    assert noticed > 50


def test_half_a_file_another_kind_and_another_version_are_refused(tmp_path):
    file = tmp_path / "odds.parquet"
    write_table(file, [ROW] * 50, SCHEMA)
    for other in (EPISODES, Schema("odds", 8, SCHEMA.kinds, SCHEMA.nullable)):
        with pytest.raises(RecordsError, match=f"holds odds of schema version 7, not {other.table}"):
            open_table(file, other)
    with pytest.raises(RecordsError, match="has no column 'new'"):
        open_table(file, Schema("odds", 7, {**SCHEMA.kinds, "new": "int"}, SCHEMA.nullable))
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(RecordsError, match="not an intact"):
        open_table(file, SCHEMA).read()


def test_extra_columns_come_after_those_of_every_turn():
    assert turn_schema(["advantage"]).names == [*TURNS.names, "advantage"]
