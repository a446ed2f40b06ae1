"""Where a search would change the policy's plain play, overspend, look at the truth, or play what it never tried."""

import asyncio
import json
from pathlib import Path

import pytest

from manyturn.agents.records.episode_rows import read_turns

DOORS = (Path(__file__).parents[1] / "trainers" / "doors.py").read_text()
BUDGET = 280
METHODS = ("best_of_n", "beam", "tree")


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    """A run on Doors that has learnt next to nothing: each turn it opens one of five doors."""
    from manyturn.trainers.recipe.config import configure
    from manyturn.trainers.run.loop.loop import train

    folder = tmp_path_factory.mktemp("searching")
    (folder / "doors.py").write_text(DOORS)
    sizes = {
        "env": {"id": f"{folder}/doors.py:Doors", "args": {"max_turns": 14}},
        "model": {"width": 16, "layers": 1, "heads": 2},
        "agent": {"max_context": 256, "only_admissible": True},
        "sampling": {"max_tokens": 8},
        "warmup": {"episodes": 0},
        "rollout": {"tasks": 2, "group": 2},
        "evaluation": {"limit": 2},
        "steps": 1,
        "device": "cpu",
    }
    asyncio.run(train(configure({}, sizes), folder / "run"))
    return folder / "run"


def evaluated(command, run: Path, out: Path, *words: object) -> dict:
    ended = command("evaluate", run, "--limit", 12, "--out", out, *words)
    assert ended.code == 0, ended.err
    return json.loads((out / "summary.json").read_text())


def spoken(out: Path) -> list[tuple]:
    return [(row["task"], row["turn"], row["reply"], row["observation"]) for row in read_turns(out / "turns.parquet")]


def test_searches_choose_better_paths_within_their_tokens(run, tmp_path, command):
    plain = evaluated(command, run, tmp_path / "plain")
    assert "search" not in plain and plain["measures"] == {}
    for name in METHODS:
        summary = evaluated(command, run, tmp_path / name, "--search", name, "--search.tokens", BUDGET)
        spent = {row: summary["measures"][f"search_{row}"]["mean"] for row in ("reply_tokens", "prompt_tokens", "ends")}
        assert summary["success"]["mean"] >= plain["success"]["mean"] + 0.2, name
        assert 0 < spent["reply_tokens"] <= BUDGET and summary["search"]["name"] == name
        assert summary["tokens"]["reply_mean"] == pytest.approx(spent["reply_tokens"])
        assert summary["tokens"]["prompt_mean"] == pytest.approx(spent["prompt_tokens"])
        assert summary["lost"]["reply_tokens"] in (0, None)


@pytest.mark.deep
def test_one_try_is_the_plain_episode_and_workers_change_nothing(run, tmp_path, command):
    evaluated(command, run, tmp_path / "plain")
    words = ("--search.name", "best_of_n", "--search.tokens", 400)
    evaluated(command, run, tmp_path / "one", *words, "--search.n", 1)
    assert spoken(tmp_path / "one") == spoken(tmp_path / "plain")
    for name in ("tree", "beam"):
        for place, workers in (("here", 0), ("workers", 2)):
            words = ("--search", name, "--search.tokens", BUDGET, "--workers", workers)
            evaluated(command, run, tmp_path / f"{name}-{place}", *words)
        assert spoken(tmp_path / f"{name}-here") == spoken(tmp_path / f"{name}-workers")


def test_values_say_which_path_is_played(run, tmp_path, command):
    words = ("--search", "best_of_n", "--search.tokens", BUDGET, "--search.value")
    oracle = evaluated(command, run, tmp_path / "oracle", *words, "oracle")
    progress = evaluated(command, run, tmp_path / "progress", *words, "progress")
    likely = evaluated(command, run, tmp_path / "likelihood", *words, "likelihood")
    assert oracle["success"]["mean"] == progress["success"]["mean"] > likely["success"]["mean"]
    assert likely["measures"]["search_reply_tokens"]["mean"] > progress["measures"]["search_reply_tokens"]["mean"]


def test_a_judge_prefers_what_its_rule_prefers(run, tmp_path, command):
    words = ("--search", "best_of_n", "--search.tokens", BUDGET, "--search.value", "judge", "--search.value.rule")
    evaluated(command, run, tmp_path / "plain")
    evaluated(command, run, tmp_path / "judged", *words, "repetition")
    repeats = {}
    for name in ("plain", "judged"):
        turns = [(row["task"], row["anchor"], row["action"]) for row in read_turns(tmp_path / name / "turns.parquet")]
        repeats[name] = len(turns) - len(set(turns))
    assert repeats["judged"] < repeats["plain"] - 12  # one of each episode
    ended = command("evaluate", run, *words, "expert")
    assert ended.code != 0 and "repetition" in ended.err


def test_an_interrupted_search_continues_and_another_one_is_refused(run, tmp_path, command):
    words = ("--search", "tree", "--search.tokens", BUDGET)
    first = evaluated(command, run, tmp_path / "out", *words)
    journal = tmp_path / "out" / "episodes.jsonl"
    lines = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join(lines[:-4]))
    again = evaluated(command, run, tmp_path / "out", *words)
    assert {**again, "seconds": 0, "lost": 0} == {**first, "seconds": 0, "lost": 0}
    ended = command("evaluate", run, "--limit", 12, "--out", tmp_path / "out", *words[:-1], BUDGET + 1)
    assert ended.code != 0 and "search.tokens" in ended.err


@pytest.mark.parametrize(
    "words, fix",
    [
        (("--search", "tree"), "search.tokens"),
        (("--search.tokens", 100), "--search.name"),
        (("--search", "three", "--search.tokens", 100), "tree"),
        (("--search", "tree", "--search.tokens", 7), "8 at least"),
        (("--search", "tree", "--search.tokens", 100, "--search.value", "truth"), "oracle"),
        (("--search", "tree", "--search.tokens", 100, "--search.n", 4), "best_of_n"),
        (("--search", "tree", "--search.tokens", 100, "--sampling.temperature", 0), "--sampling.temperature 1"),
    ],
)
def test_searches_that_cannot_be_name_the_fix(run, command, words, fix):
    ended = command("evaluate", run, *words)
    assert ended.code != 0 and fix in ended.err.replace("\n", " ")


def test_policies_without_tokens_cannot_search(command):
    for policy in ("expert", "openai:model"):
        ended = command("evaluate", policy, "--env", "manyturn/Maze-v0", "--search", "tree", "--search.tokens", 50)
        assert ended.code != 0 and "--search.name has no effect" in ended.err


def test_an_improvement_refuses_a_search(run, tmp_path, command):
    ended = command("improve", run, "--method", "cases", "--search", "tree", "--out", tmp_path / "better")
    assert ended.code != 0 and "--search.name has no effect" in ended.err and "evaluate" in ended.err


def test_worlds_without_progress_and_worlds_that_stray_are_no_score(run, tmp_path, command):
    silent = DOORS.replace("def progress", "def share")
    stray = DOORS.replace('"It stays shut."', 'f"It stays shut, now {next(COUNT)}."')
    stray = stray.replace("COLOURS =", "from itertools import count\nCOUNT = count()\nCOLOURS =", 1)
    for name, text, fix in (("silent", silent, "--search.value"), ("stray", stray, "manyturn check")):
        (tmp_path / f"{name}.py").write_text(text)
        world = ("--env", f"{tmp_path}/{name}.py:Doors", "--env.args.max_turns", 14)
        ended = command("evaluate", run, "--limit", 4, "--search", "tree", "--search.tokens", BUDGET, *world)
        assert ended.code != 0 and fix in ended.err.replace("\n", " ")
