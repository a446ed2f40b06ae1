"""A run from another's warm-up: one that differs from a run of its own, or begins with another policy unnoticed."""

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from short_runs import short_run

from manyturn.envs.contract.options.options import ConfigError
from manyturn.trainers.recipe.config import configure
from manyturn.trainers.record.run_folder import read_metrics
from manyturn.trainers.run.loop.loop import train

BRIEF = {"steps": 2, "checkpoint_every": 1, "keep_checkpoints": 1, "evaluation": {"limit": 3}}
TAUGHT = {"episodes": 12, "must_succeed": False, "batch": 4, "max_updates": 4, "check_every": 4, "check_episodes": 2}


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """A finished run with a warm-up of its own, and its summary."""
    folder = tmp_path_factory.mktemp("source") / "run"
    return folder, asyncio.run(train(short_run(**BRIEF, warmup=TAUGHT), folder))


def branch(folder: Path, source: Path, **changes: Any) -> dict[str, Any]:
    return asyncio.run(train(short_run(**{**BRIEF, "warmup": {"from_run": str(source)}, **changes}), folder))


@pytest.mark.deep
def test_a_branch_comes_to_the_bits_of_a_run_with_that_warm_up(source, tmp_path):
    folder, whole = source
    kept = sorted(path.name for path in (folder / "checkpoints").iterdir())
    assert kept == ["step_000000", "step_000002"], "the end of the warm-up stays, whatever keep_checkpoints says"
    found = branch(tmp_path / "run", folder)
    assert found["weights"] == whole["weights"] and found["updates"] == whole["updates"]
    assert found["before"] == whole["before"] and found["after"] == whole["after"]
    assert found["warmup"]["from_run"] == str(folder) and found["warmup"]["updates"] == whole["warmup"]["updates"]
    assert not [line for line in read_metrics(tmp_path / "run") if line["phase"] == "warmup"], "it has made none"
    again = branch(tmp_path / "again", tmp_path / "run", steps=0)
    assert again["weights"] == found["warmup"]["weights"], "a branch of a branch begins where both began"
    moved = Path(shutil.move(tmp_path / "again", tmp_path / "moved"))
    state = json.loads((moved / "checkpoints/step_000000/state.json").read_text())
    assert state["seen"] == json.loads((folder / "checkpoints/step_000000/state.json").read_text())["seen"]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"agent": {"format": "tagged"}}, r"agent.format.name was 'free_text' and is 'tagged'"),
        (
            {"model": {"name": "tiny", "width": 32, "layers": 1, "heads": 2, "sample_tasks": 4}},
            "model.width was 16",
        ),
        ({"env": {"id": "manyturn/GuessNumber-v0"}}, "its tokenizer has other tokens, first"),
    ],
    ids=["format", "model", "tokenizer"],
)
def test_a_warm_up_of_another_policy_is_refused_with_the_difference(source, tmp_path, changes, told):
    with pytest.raises(ConfigError, match=f"of another policy: {told}") as refusal:
        branch(tmp_path / "run", source[0], **changes)
    assert "\n" not in str(refusal.value) and not (tmp_path / "run").exists()


def test_what_is_no_whole_end_of_a_warm_up_is_refused(source, tmp_path):
    with pytest.raises(ConfigError, match=r"holds no run: it has no config.toml; name a folder"):
        branch(tmp_path / "run", tmp_path / "nowhere")
    copied = Path(shutil.copytree(source[0], tmp_path / "copied"))
    template = copied / "checkpoints/step_000000/model/chat_template.jinja"
    template.write_text(template.read_text() + " ")
    with pytest.raises(ConfigError, match=r"chat_template.jinja is missing or differs from the manifest"):
        branch(tmp_path / "run", copied)
    shutil.rmtree(copied / "checkpoints/step_000000")
    with pytest.raises(ConfigError, match="which a run keeps from the end of its warm-up on"):
        branch(tmp_path / "run", copied)


def test_an_option_of_a_warm_up_that_is_not_made_here_is_refused():
    recipe, layer = {"env": {"id": "manyturn/Maze-v0"}, "warmup": {"noise": 0.1}}, {"warmup": {"from_run": "runs/a"}}
    assert not configure(recipe, layer).warmup.imitates, "a recipe's own options wait"
    layer["warmup"]["episodes"] = 5  # type: ignore[assignment]
    with pytest.raises(ConfigError, match=r"warmup.episodes has no effect with warmup.from_run = 'runs/a': leave one"):
        configure(recipe, layer)
