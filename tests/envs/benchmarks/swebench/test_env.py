"""Promises of the environment before a container is started."""

import json

import pytest

from manyturn.envs.benchmarks.swebench.env import SWEBench
from manyturn.envs.contract.registration.env_registry import NeedsSetup

COMMIT = "0" * 40
ROW = {
    "repo": "a/b",
    "base_commit": COMMIT,
    "patch": "diff",
    "problem_statement": "It breaks.",
    "hints_text": "There.",
    "FAIL_TO_PASS": ["t::a"],
    "PASS_TO_PASS": [],
}


def rows(path, **columns):
    records = [
        {**ROW, "instance_id": f"a__b-{n}", "problem_statement": f"It breaks, {n}.", **columns} for n in range(60)
    ]
    path.write_text(json.dumps(records))
    return str(path)


def test_rows_of_swe_bench_are_for_testing_only(tmp_path):
    env = SWEBench(rows=rows(tmp_path / "a.json", environment_setup_commit=COMMIT))
    assert (env.splits, env.split, len(env.tasks("test")), len(env.tasks("train"))) == (("test",), "test", 60, 0)


def test_training_rows_are_divided_once_and_for_all(tmp_path):
    env = SWEBench(rows=rows(tmp_path / "a.json"))
    assert env.splits == ("train", "validation", "test")
    ids = [task.id for split in env.splits for task in env.tasks(split)]
    assert sorted(ids) == sorted(f"a__b-{n}" for n in range(60))
    assert len(env.tasks("train")) > 35
    assert [task.id for task in SWEBench(rows=rows(tmp_path / "b.json")).tasks("test")] == [
        t.id for t in env.tasks("test")
    ]


def test_the_agent_is_told_of_its_tools(tmp_path):
    env = SWEBench(rows=rows(tmp_path / "a.json"))
    assert [tool["function"]["name"] for tool in env.tools] == ["bash", "view", "edit", "search", "submit"]
    assert '"name": "submit"' in env.instructions


def test_what_is_missing_or_wrong_is_one_line(tmp_path):
    with pytest.raises(NeedsSetup, match='give rows="FILE"'):
        SWEBench()
    file = rows(tmp_path / "a.json")
    with pytest.raises(ValueError, match="give image=RULE"):
        SWEBench(rows=file, engine={"image": "x"})
    with pytest.raises(ValueError, match=r"engine: limits\.memory_mb"):
        SWEBench(rows=file, engine={"limits": {"memory_mb": -1}})
    with pytest.raises(ValueError, match="engine: color"):
        SWEBench(rows=file, engine={"color": "red"})


def test_no_more_episodes_are_open_than_the_engines_memory_holds(engine, tmp_path):
    from manyturn.containers.engine.preflight import examined

    file = rows(tmp_path / "a.json")
    small = {"workspace_mb": 64, "scratch_mb": 64}
    limits = [small | {"memory_mb": mb} for mb in (4096, 512)]
    few, many = (SWEBench(rows=file, engine={"limits": limit}).side_by_side for limit in limits)
    assert 1 <= few < many and many * 512 <= examined().memory >> 21
