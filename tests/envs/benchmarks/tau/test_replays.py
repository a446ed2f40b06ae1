"""Every recorded call of the originals must be answered byte for byte, and every database and reward come out."""

import hashlib
from collections.abc import Mapping
from typing import Any

import pytest
from needs import absent
from needs_files import NO_GOLDEN

from manyturn.envs.benchmarks.tau.agent_tools import answer
from manyturn.envs.benchmarks.tau.domain import AgentCall, Deeds
from manyturn.envs.benchmarks.tau.v1 import domains as v1
from manyturn.envs.benchmarks.tau.v2 import domains as v2


def hashed(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def spoiled(actions: list[dict[str, Any]], case: str, writes: frozenset[str]) -> list[dict[str, Any]]:
    """The actions of a case; the recordings count a transfer among the writes."""
    last = max((n for n, one in enumerate(actions) if one["name"] in writes | {v1.LEAVES}), default=None)
    match case:
        case "gold" | "gold_no_outputs":
            return actions
        case "nothing":
            return []
        case "drop_last_write":
            return [one for number, one in enumerate(actions) if number != last]
        case "bad_argument":
            assert last is not None
            name, arguments = actions[last]["name"], actions[last]["kwargs"]
            first = next(iter(arguments))
            bad = {"name": name, "kwargs": arguments | {first: f"{arguments[first]}_spoiled"}}
            return [*actions[:last], bad, *actions[last + 1 :]]
    raise AssertionError(f"the recordings have a case {case!r} that this test does not know")


@pytest.mark.parametrize("domain", ["retail", "airline"])
def test_no_answer_database_or_reward_differs_from_tau_bench(domain: str, official, golden) -> None:
    service = v1.load(official, domain)
    recorded = [one for one in golden("tau_bench_replay")["tasks"] if one["domain"] == domain]
    if not recorded:
        absent("GOLDEN", NO_GOLDEN)
    for one in recorded:
        task = service.tasks[one["split"]][one["task"]]
        assert [(call["name"], call["arguments"]) for call in task.params["gold"]] == [
            (call["name"], call["kwargs"]) for call in one["actions"]
        ]
        assert service.open(task).db.digest() == one["initial_db_hash"]
        for case in one["cases"]:
            desk = service.open(task)
            actions = spoiled(one["actions"], case["case"], service.writes)
            answers = [hashed(answer(desk, act["name"], act["kwargs"])) for act in actions]
            where = (task.id, case["case"])
            assert answers == case["obs_sha256"], where
            assert desk.db.digest() == case["db_hash_before_reward"], where
            parts = service.parts(desk, task, Deeds([case["reply"]], []))
            assert float(all(parts.values())) == case["reward"], where


def hashes(desk: Any) -> tuple[str, str | None]:
    phone = desk.phone_db.digest() if hasattr(desk, "phone_db") else None
    return desk.db.digest(), phone


@pytest.mark.parametrize("domain", ["retail", "airline", "telecom"])
def test_no_answer_database_or_assertion_differs_from_tau2_bench(domain: str, official, golden) -> None:
    service = v2.load(official, domain)
    tasks = {task.id.split("/", 2)[2]: task for split in service.tasks.values() for task in split}
    recorded = [one for one in golden("tau2_bench_replay")["tasks"] if one["domain"] == domain]
    if not recorded:
        absent("GOLDEN", NO_GOLDEN)
    for one in recorded:
        task = tasks[one["task"]]
        desk = service.open(task)
        assert hashes(desk) == (one["initial_db_hash"], one["initial_user_db_hash"]), task.id
        for act in one["actions"]:
            text = answer(desk, act["name"], act["arguments"], act["requestor"])
            assert hashed(text) == act["result_sha256"], (task.id, act["name"], text)
        assert hashes(desk) == (one["final_db_hash"], one["final_user_db_hash"]), task.id
        for assertion in one["assertions"]:
            assert desk.holds(assertion) == assertion["met_after_gold"], (task.id, assertion["func_name"])
        assert desk.same(service.gold(task))


@pytest.mark.parametrize(("version", "domain"), [(v1, "retail"), (v1, "airline"), (v2, "retail"), (v2, "airline")])
def test_touched_records_tell_the_same_as_the_whole_digest(version: Any, domain: str, official) -> None:
    service = version.load(official, domain)
    tasks = next(iter(service.tasks.values()))[:12]
    desks = [service.gold(task) for task in tasks]
    digests = [desk.db.digest() for desk in desks]
    assert len(set(digests)) > 4
    for desk, digest in zip(desks, digests, strict=True):
        assert [desk.same(other) for other in desks] == [digest == other for other in digests]


def outcome(service: Any, task: Any, solve: bool) -> bool:
    desk, called = service.open(task), []
    for call in task.params["gold"] if solve else ():
        called.append(AgentCall(call["name"], call["arguments"]))
        if call["name"] not in service.left_out:
            answer(desk, call["name"], call["arguments"], call["by"])
    texts = task.params["say"] if solve else []
    return all(service.parts(desk, task, Deeds(texts, called)).values())


FLOORS: Mapping[tuple[Any, str], Mapping[str, int]] = {
    (v1, "retail"): {"train": 5, "dev": 1, "test": 7},
    (v1, "airline"): {"test": 19},
    (v2, "retail"): {"train": 7, "test": 4},
    (v2, "airline"): {"train": 16, "test": 7},
    (v2, "telecom"): {"train": 0, "test": 0, "small": 0},
}


@pytest.mark.parametrize(("version", "domain"), FLOORS)
def test_reference_solutions_succeed_and_the_floor_of_doing_nothing_is_as_told(
    version: Any, domain: str, official
) -> None:
    service = version.load(official, domain)
    for split, tasks in service.tasks.items():
        assert all(outcome(service, task, True) for task in tasks)
        assert sum(outcome(service, task, False) for task in tasks) == FLOORS[version, domain][split]
