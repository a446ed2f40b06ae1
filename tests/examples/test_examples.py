"""Examples that no longer run, that nobody reads in one sitting, or that do not do what they say."""

import json
import runpy
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

FOLDER = Path(__file__).parents[2] / "examples"
LONGER = {"one_step.py"}  # a trainer in one file, which has a test of its own


@cache
def example(name: str) -> SimpleNamespace:
    return SimpleNamespace(**runpy.run_path(str(FOLDER / name), run_name="example"))


def test_an_example_is_short_and_listed():
    index = (FOLDER / "README.md").read_text(encoding="utf-8")
    files = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.py")}
    assert len(files) >= 7 and {name for name in files if f"]({name})" not in index} == set()
    assert {name for name, text in files.items() if len(text.splitlines()) > 85} <= LONGER
    assert {path.name for path in (FOLDER / "notebooks").glob("*.ipynb") if path.name not in index} == set()


def script(*words: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *map(str, words)], cwd=cwd, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("advantage", ["gigpo", "grpo"])
def test_a_loop_of_the_readers_learns_from_our_credit(advantage):
    ended = script(FOLDER / "own_training_loop.py", advantage, 30)
    assert ended.returncode == 0, ended.stderr
    lines = [line.split() for line in ended.stdout.splitlines()]
    success, turns = ([float(line[place]) for line in lines] for place in (3, 5))
    assert len(lines) == 30 and success[0] < 0.5 and np.mean(success[-5:]) > 0.9
    assert np.mean(turns[-5:]) < turns[0] - 3


def test_rollouts_of_another_trainer_are_audited():
    audit = example("audit_rollouts.py").main(continuations=24)
    scores = {score.method: score for score in audit.scores}
    assert audit.truth.reliability > 0.7 and scores["gigpo"].over_base.low > 0
    assert scores["grpo"].within.mean == 0 < scores["gigpo"].within.low
    assert "gigpo" in str(audit)


def test_the_policy_that_calls_tools_is_right_where_a_random_one_is_not(tmp_path):
    found = example("own_tool_policy.py").main(limit=12, out=str(tmp_path))
    random, secretary = found["policies"]
    assert secretary["success"]["mean"] == 1.0 and secretary["invalid_action_rate"] == 0.0
    assert random["success"]["mean"] < 0.5


def test_the_endpoint_of_the_example_is_asked_and_answers(tmp_path):
    found = example("endpoint.py").main(limit=6, out=tmp_path / "found")
    assert found.summary["n_episodes"] == 6 and found.summary["errors"]["n"] == 0
    assert found.summary["invalid_action_rate"] == 0.0 and found.summary["tokens"]["reply_mean"] > 8
    assert all(turn["reply"].startswith("<action>") for turn in found.turns)


def test_the_customer_of_the_example_is_a_model_and_its_recording_gives_the_same(tmp_path):
    live, replayed = example("desk_with_model_user.py").main(limit=4, out=str(tmp_path))
    assert live.summary["errors"]["n"] == replayed.summary["errors"]["n"] == 0
    assert live.summary["success"]["mean"] == replayed.summary["success"]["mean"] == 1.0
    assert [turn["observation"] for turn in live.turns] == [turn["observation"] for turn in replayed.turns]
    said = [json.loads(line) for line in (tmp_path / "recording.jsonl").read_text().splitlines()]
    assert {line["user"] for line in said} == {"model(simple)"} and sum(line["done"] for line in said) == 4


IN_A_RUN = """
import json, runpy, sys
import manyturn.credit as mc
own = runpy.run_path(sys.argv[1], run_name="example")
batch = mc.TurnBatch.from_episodes(
    [[0, 0, 1], [0, 0], [0, float("nan")], [1]],
    groups=["a", "a", "a", "b"],
    anchors=[["hall", "kitchen", "hall"], ["hall", "cellar"], ["hall", "hall"], ["hall"]],
)
print([round(float(one), 6) for one in mc.credit(batch, mc.CreditConfig(advantage="difference")).advantage_K])
if sys.argv[2:]:
    own["main"](out="run", **json.loads(sys.argv[2]))
"""
SMALL = {
    "steps": 1,
    "model": {"width": 16, "layers": 1, "heads": 2, "sample_tasks": 4},
    "rollout": {"tasks": 2, "group": 4},
    "evaluation": {"limit": 2},
    "warmup.episodes": 24,
    "warmup.max_updates": 10,
    "warmup.check_episodes": 2,
}


@pytest.mark.parametrize("trains", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_the_method_of_the_example_gives_each_turn_what_changed_by_it(trains, tmp_path):
    """In a process of its own, since what is registered stays. An episode that cannot be scored counts nowhere."""
    (tmp_path / "script.py").write_text(IN_A_RUN)
    ended = script("script.py", FOLDER / "own_method.py", *[json.dumps(SMALL)] * trains, cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    third = 0.333333  # rounded, as it is printed
    assert json.loads(ended.stdout.splitlines()[0]) == [third, -third, third, -0.666667, 0, 0, 0, 0]
    if trains:
        assert 'name = "difference"' in (tmp_path / "run" / "config.toml").read_text()
        assert json.loads((tmp_path / "run" / "summary.json").read_text())["steps"] == 1


@pytest.mark.slow
def test_the_environment_of_the_example_is_learnt(tmp_path):
    found = example("own_environment.py").main(out=str(tmp_path))
    difference = found["comparisons"][0]["success"]
    assert difference["ci_low"] > 0.3


@pytest.mark.slow
def test_the_engine_of_the_example_draws_a_run(forked, tmp_path):
    ended = forked(FOLDER / "own_engine.py", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert len((tmp_path / "replies.jsonl").read_text().splitlines()) > 32 and "held-out tasks" in ended.stdout


@pytest.mark.slow
@pytest.mark.parametrize("partner", ["listener", "expert"])
def test_the_roles_of_the_example_learn_apart(partner, tmp_path):
    summary = example("two_roles.py").main(partner, str(tmp_path / "run"), **SMALL)
    learnt = {path.name for path in (tmp_path / "run" / "checkpoints" / "step_000001").glob("model*")}
    assert summary["steps"] == 1
    assert learnt == {"model-speaker"} | {f"model-{partner}" for _ in range(partner == "listener")}
