"""A run without a warm-up whose first step teaches nothing stops before its first update, and says what to change."""

import asyncio
import re
from pathlib import Path

import pytest
import torch
from short_runs import short_run

from manyturn.agents.model.language_model import build_tiny
from manyturn.agents.play.agent import AgentConfig
from manyturn.agents.play.tokenizer_corpus import texts_of
from manyturn.envs.hosting.local.seats import InlineSeats
from manyturn.trainers.learn.passes.pass_budget import LearningFailed
from manyturn.trainers.record.run_folder import read_metrics
from manyturn.trainers.run.loop.loop import train

DOORS = Path(__file__).parents[2] / "doors.py"


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory):
    """A model that has never learnt to end a reply: random weights in the Hugging Face layout."""
    folder = tmp_path_factory.mktemp("model")
    texts = asyncio.run(texts_of(InlineSeats("manyturn/Maze-v0"), AgentConfig(), 4, 0))
    build_tiny(texts, 0, 512, torch.device("cpu"), width=16, layers=1, heads=2).save(folder)
    return folder


def begun(model, path, env=f"{DOORS}:Doors", **changes):
    config = {
        "env": {"id": env},
        "model": {"name": "pretrained", "path": str(model)},
        "warmup": {"episodes": 0},
        "rollout": {"tasks": 3, "group": 3, **changes.pop("rollout", {})},
        "sampling": {"max_tokens": 2},
        "evaluation": {"limit": 2},
        "steps": 1,
    }
    return asyncio.run(train(short_run(**{**config, **changes}), path))


def test_first_replies_that_are_all_cut_stop_the_run_with_the_number_to_try(model_folder, tmp_path):
    with pytest.raises(LearningFailed) as stopped:
        begun(model_folder, tmp_path / "run")
    told = r"\d+ % of the replies of the first step are cut at sampling\.max_tokens = 2, as '.*', where the expert's "
    told = (
        told.replace(" %", "%") + r"have up to (\d+) tokens: try --sampling\.max-tokens \1, .* --rollout\.cut-share 1"
    )
    found = re.match(told, str(stopped.value))
    assert found and int(found[1]) > 2, str(stopped.value)
    assert not [line for line in read_metrics(tmp_path / "run") if line["phase"] == "train"]
    assert begun(model_folder, tmp_path / "anyway", rollout={"cut_share": 1.0})["steps"] == 1


def test_without_an_expert_a_longer_reply_is_a_guess_that_is_said_to_be_one(model_folder, tmp_path):
    file = tmp_path / "doors.py"
    file.write_text(DOORS.read_text().replace("def expert(", "def best(").replace("self.expert(", "self.best("))
    with pytest.raises(LearningFailed, match=r"= 2, as '[^']*': try --sampling\.max-tokens 8, or teach"):
        begun(model_folder, tmp_path / "run", env=f"{file}:Doors")


def test_rewards_that_are_never_numbers_stop_the_run(tmp_path):
    file = tmp_path / "doors.py"
    unscored = DOORS.read_text()
    for text in ('"It stays shut."', '"It opens."'):
        unscored = unscored.replace(text, f'{text}, form=float("nan")')
    file.write_text(unscored)
    choosing = {"agent": {"only_admissible": True}, "sampling": {"max_tokens": 16}}
    few = {"warmup": {"episodes": 0}, "evaluation": {"limit": 2}, "steps": 1}
    config = short_run(env={"id": f"{file}:Doors"}, **few, **choosing)
    with pytest.raises(LearningFailed, match=r"all 9 episodes .* first 'form' at turn 1 of task train/\d+: there is"):
        asyncio.run(train(config, tmp_path / "run"))


def test_episodes_without_room_for_a_reply_name_the_limit(tmp_path):
    config = short_run(
        env={"id": f"{DOORS}:Doors"},
        warmup={"episodes": 0},
        evaluation={"limit": 2},
        agent={"max_context": 16},
        steps=1,
    )
    told = (
        r"no episode of step 1 has a turn to learn from, \d of 9 .*: \d+ prompt tokens and a reply of up to 6 exceed "
    )
    with pytest.raises(LearningFailed, match=told + r"agent\.max_context = 16"):
        asyncio.run(train(config, tmp_path / "run"))
