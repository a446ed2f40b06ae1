"""A policy that decides nothing, or that contradicts what is paid, teaches nothing."""

import inspect

import pytest

from manyturn.envs.desk.customer import nouns
from manyturn.envs.desk.database import Store
from manyturn.envs.desk.desks.packs import PACKS
from manyturn.envs.desk.task_shapes import LEVELS, REFUSED
from manyturn.envs.desk.tasks import perform, tables_of, tasks
from manyturn.envs.tools.calls import CallRequest
from manyturn.envs.tools.toolset import Toolset

COUNTS = {"tiny": 200, "easy": 1200, "medium": 40, "hard": 10}
EACH = pytest.mark.parametrize("pack", PACKS.values(), ids=lambda pack: pack.name)


@EACH
def test_a_desk_has_the_size_that_its_pages_state(pack) -> None:
    desk_tools = pack.desk_tools(Store(pack.tables(200, 0)))
    assert 12 <= len(Toolset(desk_tools.tools()).names) <= 16
    assert 8 <= len(pack.rules) <= 12
    assert [rule.name for rule in pack.rules] == [f"R{n + 1}" for n in range(len(pack.rules))]
    writes = {tool.__name__ for tool in desk_tools.writes()}
    assert {kind.tool for kind in pack.kinds} == writes, "every write is asked for"
    assert all(rule.tools <= writes for rule in pack.rules)
    for kind in pack.kinds:
        takes = set(inspect.signature(getattr(desk_tools, kind.tool)).parameters)
        assert kind.about in takes and kind.about in pack.things


@EACH
def test_what_customers_are_asked_for_has_a_name_of_its_own(pack) -> None:
    names = list(nouns(pack).values())
    assert len(set(names)) == len(names)


@EACH
@pytest.mark.parametrize("difficulty", LEVELS)
def test_requests_break_the_rule_that_forbids_them_and_the_others_none(pack, difficulty: str) -> None:
    refused = set[str]()
    for task in tasks("train", pack.name, difficulty, 300, 0)[: COUNTS[difficulty]]:
        store = Store(tables_of(task.params))
        for request in task.params["requests"]:
            kind = next(kind for kind in pack.kinds if kind.name == request["kind"])
            call = CallRequest(kind.tool, request["arguments"])
            broken = [rule.name for rule in pack.forbidding(store, call)]
            assert broken == ([request["rule"]] if request["rule"] else []), task.id
            if not request["rule"]:
                assert perform(pack, store, call), f"{task.id}: {call} changes nothing"
            refused.update(broken)
    if difficulty == "easy":
        assert refused == {rule.name for rule in pack.rules}, "every rule forbids something"


@EACH
def test_short_records_show_all_that_the_rules_of_their_requests_turn_on(pack) -> None:
    short = {
        (table, key): {name: record[name] for name in pack.brief.get(table, record)}
        for table, records in pack.tables(300, 0).records.items()
        for key, record in records.items()
    }
    for task in tasks("train", pack.name, "tiny", 300, 0)[:300]:
        [request] = task.params["requests"]
        kind = next(kind for kind in pack.kinds if kind.name == request["kind"])
        broken = [rule.name for rule in pack.forbidding(short, CallRequest(kind.tool, request["arguments"]))]
        assert broken == ([request["rule"]] if request["rule"] else []), task.id


@EACH
@pytest.mark.parametrize("split", ["train", "validation", "test"])
@pytest.mark.parametrize("difficulty", ["tiny", "easy"])
def test_the_share_of_refusals_is_the_same_in_every_split(pack, split: str, difficulty: str) -> None:
    sample = tasks(split, pack.name, difficulty, 300, 0)[:400]
    refused = [bool(request["rule"]) for task in sample for request in task.params["requests"]]
    assert abs(sum(refused) / len(refused) - REFUSED) < 0.055  # three standard deviations
