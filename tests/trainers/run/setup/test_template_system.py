"""A template's own system text that is in training or in evaluation, though it was to be left out."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from chat_model import CHATML, save_chat_model

from manyturn.agents.play.agent import AgentConfig
from manyturn.agents.play.endpoint.options import EndpointSampling
from manyturn.agents.play.endpoint.policy import OpenAIPolicy
from manyturn.api.named_policy import find_policy
from manyturn.envs.contract.options.options import ConfigError
from manyturn.trainers.recipe.config import RunConfig, parse_config
from manyturn.trainers.run.loop.loop import train
from manyturn.trainers.run.setup.run_builder import open_run

DOORS = f"{Path(__file__).parents[2] / 'doors.py'}:Doors"
OWN = "{% if messages[0]['role'] != 'system' %}{{ '<|im_start|>system\nBe helpful.<|im_end|>\n' }}{% endif %}"


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory):
    folder = save_chat_model(tmp_path_factory.mktemp("model"))
    (folder / "chat_template.jinja").write_text(OWN + CHATML)
    return folder


def run_config(folder: Path, **agent: Any) -> RunConfig:
    return parse_config(
        {
            "env": {"id": DOORS},
            "model": {"name": "pretrained", "path": str(folder)},
            "agent": {"format": "free_text", "instructions": False, "template_system": "remove", **agent},
            "sampling": {"max_tokens": 4},
            "warmup": {"episodes": 0},
            "learner": {"lora_rank": 2},
            "evaluation": {"limit": 1},
            "steps": 0,
            "threads": 1,
        }
    )


def first_prompt(agent: Any) -> str:
    return agent.template.tokenizer.decode(agent.template.opening("", "Look."))


def test_it_is_left_out_in_training_and_in_the_evaluation_of_the_run(model_folder, tmp_path):
    async def trained_with() -> str:
        async with open_run(run_config(model_folder)) as run:
            return first_prompt(run.only.at_temperature(0.0))

    bare = "<|im_start|>user\nLook.<|im_end|>\n<|im_start|>assistant\n"
    assert asyncio.run(trained_with()) == bare
    asyncio.run(train(run_config(model_folder), tmp_path / "run"))
    assert first_prompt(find_policy(str(tmp_path / "run"), {}).policy) == bare
    asked = {"instructions": False, "format": "free_text"}
    as_it_came = find_policy(str(model_folder), {"agent": asked}).policy
    assert first_prompt(as_it_came) == f"<|im_start|>system\nBe helpful.<|im_end|>\n{bare}"
    removed = find_policy(str(model_folder), {"agent": {**asked, "template_system": "remove"}}).policy
    assert first_prompt(removed) == bare


def test_it_is_refused_where_it_does_nothing(model_folder):
    with pytest.raises(ConfigError, match=r"agent.template_system has no effect: .*'You are a tester.'"):
        run_config(model_folder, system="You are a tester.")

    async def instructed() -> None:
        async with open_run(run_config(model_folder, instructions=True)):
            pass

    with pytest.raises(ConfigError, match=r"agent.template_system has no effect: the agent is given a system text"):
        asyncio.run(instructed())
    with pytest.raises(ValueError, match=r"agent.template_system has no effect: an endpoint's server renders"):
        OpenAIPolicy("model", AgentConfig(template_system="remove"), EndpointSampling())
