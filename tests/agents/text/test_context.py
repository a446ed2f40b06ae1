from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyturn.agents.text.context import CONTEXTS, Context
from manyturn.agents.text.contexts.whole import WholeConfig, WholeConversation
from manyturn.agents.text.contexts.window import Window, WindowConfig
from manyturn.agents.text.reply_format import FORMATS, ReplyFormat
from manyturn.envs.contract.options.options import ConfigError
from manyturn.envs.contract.options.registry import Named
from manyturn.trainers.recipe.config import configure


def said(memory, template, observation: str, text: str, ended: bool = True) -> list[int]:
    prompt = memory.prompt(observation)
    reply = template.encode(text) + ([template.end_id] if ended else [])
    memory.add_reply(prompt, reply, text)
    return prompt + reply


@given(st.lists(st.tuples(st.text(), st.text(max_size=20)), min_size=1, max_size=4), st.text(), st.text())
def test_the_conversation_piece_by_piece_is_what_the_template_renders_at_once(tiny_template, exchanges, system, last):
    memory = WholeConversation(WholeConfig()).start(tiny_template, system)
    for observation, reply in exchanges:
        said(memory, tiny_template, observation, tiny_template.content(reply))
    assert memory.prompt(last) == tiny_template.conversation(system, exchanges, last)


def test_a_cut_reply_gets_its_end_token_once_and_a_finished_one_keeps_its_own(tiny_template):
    finished = WholeConversation(WholeConfig()).start(tiny_template, "")
    cut = WholeConversation(WholeConfig()).start(tiny_template, "")
    said(finished, tiny_template, "one", "go north", ended=True)
    said(cut, tiny_template, "one", "go north", ended=False)
    assert finished.prompt("two") == cut.prompt("two")
    assert finished.prompt("two").count(tiny_template.end_id) == 1


def test_a_window_shows_the_goal_the_last_turns_and_how_many_are_left_out(tiny_template):
    memory = Window(WindowConfig(turns=2)).start(tiny_template, "Rules.")
    for turn in range(5):
        said(memory, tiny_template, f"see {turn}", f"do {turn}")
    text = tiny_template.tokenizer.decode(memory.prompt("see 5"))
    assert "Rules." in text and "see 0" in text and "(3 turns left out)" in text
    assert "do 2" not in text and "see 2" not in text
    assert all(part in text for part in ("see 3", "do 3", "see 4", "do 4", "see 5"))


def test_a_window_that_nothing_has_left_yet_is_the_whole_conversation(tiny_template):
    contexts = (WholeConversation(WholeConfig()), Window(WindowConfig(turns=3)))
    whole, window = (context.start(tiny_template, "R") for context in contexts)
    for turn in range(3):
        for memory in (whole, window):
            said(memory, tiny_template, f"see {turn}", f"do {turn}")
    assert whole.prompt("now") == window.prompt("now")


def test_a_window_of_no_turns_still_shows_the_goal_and_the_present(tiny_template):
    memory = Window(WindowConfig(turns=0)).start(tiny_template, "")
    said(memory, tiny_template, "the goal", "a")
    said(memory, tiny_template, "the past", "b")
    text = tiny_template.tokenizer.decode(memory.prompt("the present"))
    assert "the goal" in text and "the present" in text and "the past" not in text


class LastConfig(Named):
    name: Literal["test_last"] = "test_last"


class Last(Context):
    """All that a context must say is what it shows."""

    def __init__(self, config: LastConfig):
        pass

    def shown(self, past, observation):
        return list(past[-1:]), observation


def test_a_context_that_only_says_what_it_shows_prompts_with_just_that(tiny_template):
    memory = Last(LastConfig()).start(tiny_template, "R")
    seen = []
    for turn in range(3):
        seen.append(memory.prompt(f"o{turn}"))
        memory.add_reply(seen[-1], tiny_template.reply(f"r{turn}"), f"r{turn}")
    assert seen[2] == tiny_template.conversation("R", [("o1", "r1")], "o2")
    assert seen[1] == tiny_template.conversation("R", [("o0", "r0")], "o1")


@pytest.mark.parametrize("registry", [CONTEXTS, FORMATS])
def test_every_context_and_format_has_documented_options_and_says_what_it_does(registry):
    for name in registry.names():
        entry = registry.entry(name)
        assert issubclass(entry.function, Context | ReplyFormat) and entry.function.__doc__
        for option, field in entry.config_type.model_fields.items():
            assert field.description or option == "name", f"{name}.{option} has no docstring"


def test_options_of_another_context_are_refused():
    with pytest.raises(ConfigError, match=r"agent\.context: turns is no option of context whole, but of window"):
        configure({"env": {"id": "manyturn/Maze-v0"}, "agent": {"context": {"name": "whole", "turns": 2}}})
