"""No episode's change reaches another episode or the shared records, and digests are the benchmarks' own."""

import copy
import hashlib
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manyturn.envs.benchmarks.tau.database import ARRAYS, OBJECTS, TUPLES, Base, Database, Style

scalars = st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=False) | st.text(max_size=3)
values = st.recursive(
    scalars,
    lambda part: st.lists(part, max_size=3) | st.dictionaries(st.text(max_size=2), part, max_size=3),
    max_leaves=6,
)
records = st.dictionaries(st.sampled_from("abc"), values, max_size=3)
tables = st.dictionaries(
    st.sampled_from(["x", "y"]), st.dictionaries(st.sampled_from("pqrs"), records, max_size=4), min_size=1
)
edits = st.lists(st.tuples(st.sampled_from("pqrst"), st.sampled_from("abc"), values), max_size=5)


def as_tuples(item):
    if isinstance(item, dict):
        return tuple((key, as_tuples(value)) for key, value in sorted(item.items()))
    return tuple(as_tuples(element) for element in item) if isinstance(item, list) else item


def reference(tables: dict, style: Style) -> str:
    """The benchmarks' digests, word for word."""
    if style is TUPLES:
        return hashlib.sha256(str(as_tuples(tables)).encode()).hexdigest()
    if style is ARRAYS:
        tables = {name: list(table.values()) for name, table in tables.items()}
    return hashlib.sha256(json.dumps(tables, sort_keys=True).encode()).hexdigest()


@settings(max_examples=60)
@given(tables, edits, st.sampled_from([TUPLES, OBJECTS, ARRAYS]))
def test_changes_stay_in_their_episode_and_reach_the_digest(tables: dict, edits: list, style: Style) -> None:
    before, changed = copy.deepcopy(tables), copy.deepcopy(tables)
    base = Base(tables, style)
    one, other = Database(base), Database(base)
    for name in tables:
        for key, field, value in edits:
            if key in one[name]:
                one[name].edit(key)[field] = copy.deepcopy(value)
            else:
                one[name][key] = {field: copy.deepcopy(value)}
            changed[name].setdefault(key, {})[field] = value
    assert tables == before
    assert other.digest() == reference(before, style)
    assert one.digest() == reference(changed, style)
    assert one.same(other) == other.same(one) == (one.digest() == other.digest())
    again = Database(base)
    again.load(json.loads(json.dumps(one.save())))
    assert again.digest() == one.digest()


def test_a_read_copies_nothing_and_a_missing_record_is_no_record() -> None:
    base = Base({"x": {"p": {"a": 1}}}, TUPLES)
    db = Database(base)
    assert db["x"]["p"] is base.tables["x"]["p"] and db["x"].shown("p") == '{"a": 1}'
    with pytest.raises(KeyError):
        db["x"].edit("q")
    assert "q" not in db["x"] and not db["x"].own
