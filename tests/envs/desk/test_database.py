"""Episodes share one database: what one writes, no other may see."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyturn.envs.contract.random_keys import digest
from manyturn.envs.desk.database import Store, Tables
from manyturn.envs.desk.desks.packs import PACKS
from manyturn.envs.tools.tool import ToolError

USER = {"email": "a@mail.com", "name": "A B", "zip_code": "1", "orders": ("W1", "W2")}
TABLES = Tables(
    {"users": {"C1": USER}, "orders": {f"W{n}": {"status": "pending", "items": ("I1", "I2")} for n in (1, 2)}}
)
WRITES = st.lists(
    st.tuples(
        st.sampled_from(["W1", "W2"]),
        st.fixed_dictionaries(
            {},
            optional={
                "status": st.sampled_from(["pending", "gone"]),
                "items": st.sampled_from([("I1", "I2"), ("I2",)]),
            },
        ),
    )
)


@given(WRITES)
def test_the_delta_is_what_differs_and_nothing_else(writes: list) -> None:
    before, store = digest(TABLES.records), Store(TABLES)
    plain = {key: dict(record) for key, record in TABLES.records["orders"].items()}
    for key, fields in writes:
        store.change("orders", key, **fields)
        plain[key].update(fields)
    expected = {}
    for key, record in plain.items():
        changed = {name: value for name, value in record.items() if value != TABLES.records["orders"][key][name]}
        if changed:
            expected["orders", key] = changed
    assert store.delta() == expected
    assert all(store["orders", key] == record for key, record in plain.items())
    assert digest(TABLES.records) == before and Store(TABLES).delta() == {}
    other = Store(TABLES)
    other.load(json.loads(json.dumps(store.save())))
    assert other.delta() == store.delta()


def test_a_record_that_is_not_there_is_told_to_the_agent() -> None:
    with pytest.raises(ToolError, match="no order 'W9'"):
        Store(TABLES).change("orders", "W9", status="gone")


@pytest.mark.parametrize("pack", PACKS.values(), ids=lambda pack: pack.name)
def test_a_database_depends_on_its_seed_alone(pack) -> None:
    make = pack.tables.__wrapped__
    assert digest(make(200, 1).records) == digest(make(200, 1).records) != digest(make(200, 2).records)
    assert len(make(200, 1).by_email) == len(make(200, 1).by_name) == 200
