"""Strata that are not those of Stratified GRPO's paper: numbers of calls of an environment's tool."""

import asyncio
from pathlib import Path

import pytest
from short_runs import short_run

from manyturn.agents.records.episode_rows import read_turns
from manyturn.envs.hosting.local.seats import InlineSeats
from manyturn.envs.tools.calls import call_text
from manyturn.recipes import load_recipe
from manyturn.trainers.learn.columns.tool_calls import ToolCallsConfig, called
from manyturn.trainers.record.run_folder import read_metrics
from manyturn.trainers.run.loop.loop import train

ROOM = f"{Path(__file__).parents[2].joinpath('searches.py')}:Searches"


def refused(env: str, **options) -> str | None:
    return ToolCallsConfig(**options).refuse(None, InlineSeats(env, {}, (), limit=1).facts)


def test_calls_are_counted_by_name_and_what_cannot_be_read_is_none():
    search, answer = call_text("search", query="Ada"), call_text("answer", text="1815", sources=["p1"])
    assert [called(action, ["search"]) for action in (search, answer, f"[{search}, {search}]", search[:-1], "")] == [
        *(1, 0, 2, 0, 0)
    ]
    assert called(f"[{search}, {answer}]", ()) == 2


def test_an_environment_without_the_tool_is_refused():
    assert "tells agents of none" in refused("manyturn/Maze-v0")
    assert "unknown tool 'serch'; did you mean 'search'?" in refused("manyturn/Search-v0", tools=("serch",))
    assert refused("manyturn/Search-v0", tools=("search",)) is None and refused(ROOM) is None


@pytest.mark.deep
def test_a_run_compares_episodes_that_called_the_tool_as_often(tmp_path):
    recipe, weights = load_recipe("stratified-search"), {}
    warmup = {"episodes": 40, "noise": 0.5, "max_updates": 150, "check_every": 150, "until_success": 1.0}
    for name, stratum in {"calls": "tool_calls", "turns": "turns"}.items():
        columns = [{"name": "tool_calls", "tools": ["search"]}] if name == "calls" else []
        credit = {"advantage": {**recipe["credit"]["advantage"], "stratum": stratum, "blend": 1.0}}
        config = short_run(
            env={"id": ROOM},
            sampling={"max_tokens": 24},
            warmup={**warmup, "must_succeed": False, "check_episodes": 4},
            rollout={"tasks": 2, "group": 8},
            credit=credit,
            columns=columns,
            steps=1,
            evaluation={"limit": 1},
        )
        weights[name] = asyncio.run(train(config, tmp_path / name))["weights"]
    [line] = [line for line in read_metrics(tmp_path / "calls") if line["phase"] == "train"]
    played = [row for file in (tmp_path / "calls" / "turns").glob("*") for row in read_turns(file)]
    searches = [called(row["action"], ["search"]) for row in played if row["stage"] == "train/1"]
    assert 0 < line["tool_calls"] == pytest.approx(sum(searches) / 16)
    assert weights["calls"] != weights["turns"]
