"""Choice decoding from the command line: a run that is limited, its evaluation, and what is compared with it."""

import asyncio
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console
from short_runs import figures, resumed_to_the_bit

from manyturn.agents.evaluation.paired_comparison import read_evaluation
from manyturn.agents.model.language_model import build_tiny
from manyturn.agents.play.agent import AgentConfig
from manyturn.agents.play.tokenizer_corpus import texts_of
from manyturn.agents.records.episode_rows import read_turns
from manyturn.api.comparison import compare_evaluations
from manyturn.api.evaluation import evaluate
from manyturn.envs.hosting.local.seats import open_seats
from manyturn.recipes.stack import stacked
from manyturn.report.evaluation import evaluation_head
from manyturn.trainers.recipe.config import configure
from manyturn.trainers.record.run_folder import read_metrics
from manyturn.trainers.run.loop.loop import train

LAMPS = Path(__file__).parents[1] / "trainers" / "lamps.py"
LIMITED = "every reply was limited to the admissible commands of its turn"
RECIPE: dict[str, Any] = {
    "env": {"id": f"{LAMPS}:Lamps"},
    "model": {"name": "tiny", "width": 16, "layers": 1, "heads": 2, "sample_tasks": 9},
    "agent": {"format": "tagged", "instructions": False, "max_context": 256, "only_admissible": True},
    "sampling": {"max_tokens": 32},
    "warmup": {
        "episodes": 12,
        "max_updates": 6,
        "check_every": 6,
        "check_episodes": 4,
        "until_success": 0.0,
        "must_succeed": False,
    },
    "rollout": {"tasks": 3, "group": 3},
    "learner": {"minibatch": 3, "lr": 1e-2},
    "objective": {"name": "clip", "kl": {"coef": 0.01}, "epo": {}},
    "evaluation": {"limit": 3},
    "steps": 4,
    "checkpoint_every": 2,
    "device": "cpu",
    "threads": 1,
}


def limited(**changes: Any):
    return configure(stacked([RECIPE, changes]))


@pytest.fixture(scope="module")
def trained(tmp_path_factory, forked) -> Path:
    """A run from the command line."""
    import tomli_w

    folder = tmp_path_factory.mktemp("limited")
    free = stacked([RECIPE, {"agent": {"only_admissible": False}}])
    (folder / "recipe.toml").write_text(tomli_w.dumps(free))
    words = ["--recipe", "recipe.toml", "--agent.only-admissible", "true", "--out", "run"]
    ended = forked("-m", "manyturn", "train", *words, cwd=folder)
    assert ended.returncode == 0, ended.stderr
    return folder / "run"


@pytest.mark.deep
def test_a_limited_run_says_nothing_else_learns_and_says_that_it_was_limited(trained):
    steps = [line for line in read_metrics(trained) if line["phase"] == "train"]
    assert len(steps) == 4
    assert all(line["invalid"] == 0 and line["engine_gap"] < 1e-5 for line in steps)
    assert all(line["entropy"] < 1.1 / 8 for line in steps), "one token in eight or more is drawn, of three words"
    rows = [row for file in sorted(trained.glob("turns/*.parquet")) for row in read_turns(file)]
    assert {row["action"] for row in rows} == {"red", "blue", "green"}
    forced = [p == 0 for row in rows for p in row["logprobs"]]
    assert sum(forced) > 0.5 * len(forced)
    weights = [(path / "model" / "model.safetensors").read_bytes() for path in trained.glob("checkpoints/step_*")]
    assert len(set(weights)) == len(weights) > 1
    summary = json.loads((trained / "evaluation" / "summary.json").read_text())
    assert summary["agent"]["only_admissible"] is True and summary["invalid_action_rate"] == 0
    assert "only_admissible = true" in (trained / "config.toml").read_text()


def test_what_was_limited_is_not_compared_in_silence_with_what_was_not(tmp_path):
    env, agent = RECIPE["env"]["id"], {**RECIPE["agent"], "format": "free_text"}
    texts = asyncio.run(texts_of(open_seats(env), AgentConfig(), tasks=4, seed=0))
    build_tiny(texts, 0, 256, torch.device("cpu"), width=16, layers=1, heads=2).save(tmp_path / "model")
    shown = []
    for limited_to in (False, True):
        out = tmp_path / f"{limited_to}"
        told = {**agent, "only_admissible": limited_to}
        done = evaluate(tmp_path / "model", env, limit=3, out=out, agent=told, sampling={"max_tokens": 8})
        text = io.StringIO()
        done.show(Console(file=text, width=200))
        warnings = evaluation_head(read_evaluation(out)).warnings
        shown += [LIMITED in text.getvalue(), any(LIMITED in warning for warning in warnings)]
        assert (done.summary["invalid_action_rate"] == 0) is limited_to
    assert shown == [False, False, True, True]
    text = io.StringIO()
    found = compare_evaluations([tmp_path / "False", tmp_path / "True"], console=Console(file=text, width=200))
    assert "note: replies that were possible: any, admissible commands only" in text.getvalue()
    assert found["notes"] == ["replies that were possible: any, admissible commands only"]


def test_an_environment_that_lists_no_commands_refuses_before_anything_is_played(forked, tmp_path):
    lamps = LAMPS.read_text().replace("def admissible(", "def colours(").replace(".admissible()", ".colours()")
    (tmp_path / "quiet.py").write_text(lamps)
    options = ["--agent.only-admissible", "true", "--out", "run"]
    ended = forked("-m", "manyturn", "train", "quiet.py:Lamps", *options, cwd=tmp_path)
    assert ended.returncode and not (tmp_path / "run" / "metrics.jsonl").exists()
    assert re.search(r"agent\.only_admissible chooses among admissible commands, which .*Lamps does not", ended.stderr)


@pytest.mark.slow
def test_a_limited_run_has_the_same_bits_with_workers_and_after_a_kill(trained, tmp_path):
    calm = resumed_to_the_bit(limited(), tmp_path)
    asyncio.run(train(limited(env={"workers": 2}), tmp_path / "workers"))
    assert figures(tmp_path / "workers") == figures(calm) == figures(trained)


@pytest.mark.slow
def test_a_run_that_chooses_whole_commands_has_the_same_bits_after_a_kill_and_is_evaluated_so(tmp_path):
    calm = resumed_to_the_bit(limited(agent={"choices": "command"}), tmp_path)
    steps = [line for line in read_metrics(calm) if line["phase"] == "train"]
    assert all(line["engine_gap"] < 1e-5 for line in steps)
    summary = json.loads((calm / "evaluation" / "summary.json").read_text())
    assert summary["agent"]["choices"] == "command" and summary["invalid_action_rate"] == 0
