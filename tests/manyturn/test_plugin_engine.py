"""An engine of somebody else's package: it must train and evaluate by its name alone, and be trusted with nothing."""

import json
import os
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import plugin_package
import pytest
import tomli_w
from forked import Forking

from manyturn.agents.records.episode_rows import read_turns
from manyturn.trainers.record.run_folder import read_metrics

PLAIN = (Path(__file__).parents[2] / "examples" / "own_engine.py").read_text(encoding="utf-8")
Manyturn = Callable[..., "subprocess.CompletedProcess[str]"]
# So short a warm-up teaches no action: the policy is paid for brevity, so that every step has something to learn from.
RECIPE: dict[str, Any] = {
    "env": {"id": "manyturn/Maze-v0", "args": {"max_turns": 5}},
    "model": {"name": "tiny", "width": 16, "layers": 1, "heads": 2, "sample_tasks": 4},
    "agent": {"instructions": False},
    "warmup": {
        "episodes": 24,
        "must_succeed": False,
        "batch": 4,
        "max_updates": 24,
        "check_every": 24,
        "check_episodes": 2,
    },
    "sampling": {"max_tokens": 6},
    "rollout": {"tasks": 3, "group": 3},
    "credit": {
        "advantage": {"name": "gigpo"},
        "rewards": [{"name": "overlong", "max_tokens": 6, "buffer": 5, "over": "reply"}],
    },
    "learner": {"minibatch": 3},
    "evaluation": {"limit": 2},
    "steps": 3,
    "checkpoint_every": 1,
    "keep_checkpoints": 9,
    "device": "cpu",
}


def installed(folder: Path, source: str, forked: Forking) -> Manyturn:
    """The command line of a machine on which the package with the engine is installed."""
    site = plugin_package.install(folder / "site", "plain_engine", source)
    (folder / "recipe.toml").write_text(tomli_w.dumps(RECIPE))
    path = os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")])

    def run(*words: object) -> subprocess.CompletedProcess[str]:
        return forked("-m", "manyturn", *words, cwd=folder, env={**os.environ, "PYTHONPATH": path})

    return run


def replies(file: Path) -> list[tuple[Any, ...]]:
    """What the engine wrote down: seed, stage, task, member, turn, ids, log-probabilities, version, tokens so far."""
    return [tuple(json.loads(line)) for line in file.read_text().splitlines()]


@pytest.fixture(scope="module")
def trained(tmp_path_factory, forked) -> tuple[Path, Manyturn]:
    folder = tmp_path_factory.mktemp("plain")
    manyturn = installed(folder, PLAIN, forked)
    words = ["--recipe", "recipe.toml", "--engine.name", "plain", "--engine.replies", "replies.jsonl", "--out", "run"]
    ended = manyturn("train", *words)
    assert ended.returncode == 0, ended.stderr
    return folder, manyturn


@pytest.mark.deep
def test_every_token_of_a_run_is_the_engines_with_its_log_probability(trained):
    folder, _ = trained
    said = replies(folder / "replies.jsonl")
    assert said[-1][-1] == sum(len(reply[5]) for reply in said), "the engine's own counter"
    drawn = {(stage, task, member, turn): rest for _, stage, task, member, turn, *rest in said}
    rows = [row for file in sorted(folder.glob("run/turns/*.parquet")) for row in read_turns(file)]
    assert len(rows) > 3 * 9 and Counter(key[0] for key in drawn)["train/3"] >= 9
    for row in rows:
        ids, logprobs, version, _ = drawn.pop((row["stage"], row["task"], row["member"], row["turn"]))
        assert len(row["tokens"]) == row["reply_tokens"] == len(ids)
        assert row["logprobs"] == pytest.approx(logprobs, abs=1e-6) and row["policy_version"] == version
        assert row["entropies"] is None
    assert not [key for key in drawn if key[0].startswith("train/")], "drawn for a step and not learnt from"


def test_the_engine_draws_with_what_was_learnt(trained):
    """It has a copy of its own: log-probabilities are the learner's only if each update has reached it."""
    folder, _ = trained
    steps = [line for line in read_metrics(folder / "run") if line["phase"] == "train"]
    assert len(steps) == 3 and max(line["engine_gap"] for line in steps) < 1e-4
    weights = [(path / "model" / "model.safetensors").read_bytes() for path in folder.glob("run/checkpoints/step_*")]
    assert len(set(weights)) == 4, "every step must change the weights"
    versions = [version for *_, version, _ in replies(folder / "replies.jsonl")]
    assert sorted(set(versions)) == sorted({24, *(line["version"] for line in steps)})


@pytest.mark.slow
def test_a_run_is_evaluated_with_its_engine_or_with_another_one(trained):
    folder, manyturn = trained
    words = {
        "own": ["--engine.replies", "more.jsonl"],
        "other": ["--engine", "transformers", "--engine.max-batch", 1],
    }
    for name, chosen in words.items():
        ended = manyturn("evaluate", "run", "--limit", 2, "--out", name, *chosen)
        assert ended.returncode == 0, ended.stderr
    own, other = (json.loads((folder / name / "summary.json").read_text()) for name in words)
    assert len(replies(folder / "more.jsonl")) == 2 * own["turns"]["mean"] > 0
    assert own["turns"] == other["turns"] and own["tokens"] == other["tokens"], "the noise is the episode's"


def test_an_engine_that_answers_nonsense_stops_the_run_and_says_so(tmp_path, forked):
    nonsense = PLAIN.replace("logprobs.append(float(logprobs_V[ids[-1]]))", "logprobs.append(float('nan'))")
    assert nonsense != PLAIN
    words = ["--recipe", "recipe.toml", "--engine.name", "plain", "--engine.replies", "replies.jsonl", "--out", "run"]
    ended = installed(tmp_path, nonsense, forked)("train", *words, "--rollout.attempts", 1, "--warmup.episodes", 0)
    assert ended.returncode not in (0, 2) and "nan cannot be among its log-probabilities" in ended.stderr
