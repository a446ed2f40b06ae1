"""Runs that plan or summarise: killed, with what promises to take inner turns, and refused where it is not."""

import asyncio
import json
from pathlib import Path

import pytest
from short_runs import resumed_to_the_bit, short_run

import manyturn as mt
from manyturn.agents.records.episode_rows import read_episodes, read_turns
from manyturn.envs.contract.options.options import ConfigError
from manyturn.trainers.recipe.config import configure
from manyturn.trainers.record.run_folder import read_metrics
from manyturn.trainers.run.loop.loop import train

CORRIDOR = f"{Path(__file__).parents[2] / 'corridor.py'}:Corridor"
PLANNING = {"inner": {"name": "planning", "tokens": 6}}
SUMMARY = {"context": {"name": "summary", "tokens": 10, "summaries": 2}, "max_context": 140}
AGENTS = {"planning": {**PLANNING, "max_context": 512}, "summary": SUMMARY}


TEMPERED = {"tasks": 3, "group": 4, "tempering": {"target": 1.0}}
LONG = [{"inner": {"name": "planning", "tokens": 600}}, {"context": {"name": "summary", "tokens": 600}}]


@pytest.mark.deep
@pytest.mark.parametrize("name", AGENTS)
def test_a_killed_run_goes_on_to_the_same_bits(tmp_path, name):
    run = resumed_to_the_bit(short_run(agent=AGENTS[name]), tmp_path)
    rows = [row for file in sorted((run / "turns").iterdir()) for row in read_turns(file)]
    inner = [row for row in rows if row["inner"]]
    assert {row["inner"] for row in inner} == {"plan" if name == "planning" else "summary"}
    assert all(row["reward"] == 0 and row["action"] == "" for row in inner)
    assert any(row["advantage"] for row in inner), "they are learnt from"
    for file in (run / "episodes").iterdir():
        assert all(row["turns"] <= 5 for row in read_episodes(file))
    kind = inner[0]["inner"]
    assert all(line[f"{kind}/inner_turns"] > 0 for line in read_metrics(run) if line["phase"] == "train")


@pytest.mark.deep
@pytest.mark.parametrize(
    "changes",
    [
        {"order": {"kind": "asynchronous"}},
        {"rollout": TEMPERED, "credit": {"advantage": "arbitrary_entropy"}},
        {"credit": {"advantage": {"name": "gae"}}, "value": {}},
        {"credit": {"advantage": "gigpo", "rewards": ["spa"]}, "progress": {}},
        {"objective": {"name": "gspo"}},
    ],
    ids=["asynchronous", "tempering", "critic", "estimator", "sequences"],
)
def test_a_run_that_plans_goes_with(tmp_path, changes):
    small = {"steps": 2, "agent": AGENTS["planning"], "evaluation": {"limit": 2, "every": 0}}
    asyncio.run(train(short_run(**{**small, **changes}), tmp_path / "run"))
    assert read_metrics(tmp_path / "run")[-1]["step"] == 2


@pytest.mark.deep
def test_a_run_with_summaries_is_evaluated_and_exported(tmp_path, forked):
    run = tmp_path / "run"
    asyncio.run(train(short_run(steps=1, agent=SUMMARY, evaluation={"limit": 2, "every": 0}, keep_tokens=True), run))
    result = mt.evaluate(str(run), limit=3, out=tmp_path / "evaluation")
    [*turns] = read_turns(tmp_path / "evaluation" / "turns.parquet")
    assert len(result.episodes) == 3 and "summary" in {row["inner"] for row in turns}
    for form in ("atif", "chat"):
        ended = forked(
            "-m",
            "manyturn",
            "trajectories",
            "export",
            str(run),
            "--as",
            form,
            "--out",
            str(tmp_path / form),
            cwd=tmp_path,
        )
        assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize("agent", LONG)
def test_inner_turns_without_room_for_a_prompt_are_refused(agent):
    with pytest.raises(ConfigError, match=r"agent\.max_context"):
        configure({"env": {"id": "manyturn/Maze-v0"}, "agent": {**agent, "max_context": 600}})


def test_an_endpoint_is_not_asked_for_inner_turns():
    with pytest.raises(ValueError, match=r"agent\.inner"):
        mt.evaluate("openai:any", env="manyturn/Maze-v0", limit=1, agent={"inner": "planning"})


def corridor(folder: Path, context: dict) -> dict[str, float]:
    """Sampled success before and after a run in a corridor whose lamp leaves the context before it is asked for."""
    agent = {"instructions": False, "only_admissible": True, "max_context": 64, "context": context}
    warmup = {"episodes": 300, "batch": 16, "lr": 4e-3, "max_updates": 150, "check_every": 150, "noise": 0.0}
    config = {
        "env": {"id": CORRIDOR},
        "model": {"name": "tiny", "width": 32, "layers": 2, "heads": 2},
        "agent": agent,
        "sampling": {"max_tokens": 4},
        "warmup": {**warmup, "until_success": 1.0, "check_episodes": 20, "must_succeed": False},
        "rollout": {"tasks": 16, "group": 8},
        "credit": {"advantage": "grpo", "truncated": "left_out"},
        "learner": {"lr": 2e-3, "old_logprobs": "engine"},
        "evaluation": {"limit": 40, "repeats": 3, "greedy": False},
        "steps": 20,
        "checkpoint_every": 100,
        "device": "cpu",
    }
    asyncio.run(train(configure(config), folder))
    summary = json.loads((folder / "summary.json").read_text())
    return {name: summary[name]["success"] for name in ("before", "after")}


@pytest.mark.deep
def test_a_policy_learns_what_to_note_down(tmp_path):
    notes = {"name": "summary", "tokens": 14, "summaries": 4, "request": "Note.", "heading": "Notes:"}
    learnt = corridor(tmp_path / "notes", notes)
    assert learnt["after"] > learnt["before"] + 0.1 and learnt["after"] > 0.85
    forgetful = corridor(tmp_path / "window", {"name": "window", "turns": 2})
    assert forgetful["after"] < 0.45, "one colour of four is a guess"
