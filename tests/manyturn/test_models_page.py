"""docs/models.md promises settings that a run does not have."""

import re
import shlex
import tomllib
from pathlib import Path

from manyturn.api.training import configured
from manyturn.envs.contract.options.overlay import overlay
from manyturn.terminal.overrides import parse_words
from manyturn.trainers.recipe.config import to_toml

PAGE = (Path(__file__).parents[2] / "docs" / "models.md").read_text(encoding="utf-8")


def train_lines():
    blocks = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    lines = [line.partition("#")[0] for block in blocks for line in block.splitlines()]
    return [shlex.split(line)[2:] for line in lines if line.startswith("manyturn train ")]


def config_of(words):
    """The configuration that a command line means; what is about the run's folder left out."""
    if "--out" in words:
        words = words[: words.index("--out")]
    plain, options = parse_words(words)
    return configured((), options, *plain)


def test_the_settings_on_the_page_are_those_of_a_run_with_nothing_but_a_path():
    [promised] = [tomllib.loads(block) for block in re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)]
    config = tomllib.loads(to_toml(config_of(["doors.py:Doors", "--model.path", "./my-model"])))
    assert overlay(config, promised) == config


def test_every_command_of_the_page_means_a_run():
    models = [config_of(words).model.label for words in train_lines()]
    mine, others = "./my-model", ["tiny, 64 wide, 2 layers", "Qwen/Qwen2.5-0.5B-Instruct"]
    assert sorted(models) == sorted([*others, mine, mine, mine])


def test_a_recipe_of_a_tiny_model_takes_another_one_by_name():
    options = parse_words(shlex.split("--model ./my-model"))[1]
    config = configured(("quickstart",), options)
    assert config.model.label == "./my-model" and config.learner.lr == 5e-4
