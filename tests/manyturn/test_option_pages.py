"""An option that is documented nowhere, or whose documentation says something else than its class."""

import re
from pathlib import Path
from typing import Literal

import pytest

from manyturn.cli.pages.option_pages import groups, markdown, of_section
from manyturn.envs.contract.options.option_paths import option_paths
from manyturn.envs.contract.options.registry import Named
from manyturn.terminal import command_exit
from manyturn.trainers.recipe.config import RunConfig
from manyturn.trainers.recipe.logger import LOGGERS, Logger

pytestmark = pytest.mark.versions

PAGE = Path(__file__).parents[2] / "docs" / "options.md"


def test_the_page_of_options_is_what_the_classes_say():
    assert PAGE.read_text(encoding="utf-8") == markdown(), (
        "make it again: manyturn options --markdown > docs/options.md"
    )


def test_every_entry_of_a_configuration_has_its_line_and_says_what_it_does():
    listed = {row.name: row for group in groups(own=True) for row in group.rows}
    sections = {place.name for place in option_paths(RunConfig) if place.section is place.field.annotation}
    assert {place.name for place in option_paths(RunConfig)} - sections <= listed.keys()
    assert {name for name, row in listed.items() if not row.about or not row.kind} == set()


def test_an_option_shows_what_it_takes_and_the_default_of_each_model():
    [rate] = [row for group in of_section("learner.lr") for row in group.rows]
    assert (rate.kind, rate.default) == ("number, at least 0", "0.0005; pretrained: 0.0001")
    shown = {row.name: row for group in of_section("agent") for row in group.rows}
    assert shown["agent.instructions"].default == "true; tiny, tiny-100k, tiny-1m, tiny-5m: false"
    assert shown["agent.format"].default.endswith('pretrained, evaluate MODEL, evaluate openai:MODEL: "tagged"')
    assert shown["agent.max_context"].default.endswith("evaluate MODEL: 8192; evaluate openai:MODEL: 131072")
    assert {"agent.context.turns", "agent.format.think"} <= shown.keys(), "options of parts are among them"


@pytest.mark.parametrize("section", ["learner", "credit.advantage", "endpoint", "max_context", "agent.max-context"])
def test_a_section_is_printed_with_the_names_that_the_command_line_takes(command, section):
    found = command("options", section)
    if section == "max_context":
        assert found.code == command_exit.BAD_INPUT and "unknown section of options" in found.err
        return
    assert found.code == 0 and f"--{section}" in found.out
    assert not re.search(r"--\S*_", found.out)


class ListedConfig(Named):
    name: Literal["test_listed"] = "test_listed"
    mark_of_it: str = "!"
    """What a plugin's option does."""


@LOGGERS.register(ListedConfig)
class Listed(Logger):
    """A plugin's logger."""


def test_a_plugins_option_is_listed_and_the_page_leaves_it_out(command):
    found = command("options", "loggers").out
    assert 'loggers = "test_listed"\nA plugin\'s logger.' in found
    assert '--loggers.mark-of-it  text; default "!"' in found
    assert "test_listed" not in markdown()


def test_help_of_train_names_the_environment_and_where_options_are_listed(command):
    found = command("train", "--help")
    told = " ".join(found.out.split())
    assert "train [ENV] [--SECTION.OPTION VALUE]" in told and "manyturn options lists them all" in told
