import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyturn.agents.text.formats.free_text import FreeText, FreeTextConfig
from manyturn.agents.text.formats.tagged import Tagged, TaggedConfig
from manyturn.agents.text.reply_format import Parsed


@pytest.mark.parametrize(
    ("reply", "parsed"),
    [
        ("<action>go north</action>", Parsed("go north", True)),
        ("I think <action>a</action> no, <action>b</action>", Parsed("b", True)),
        ("<think>the tag <action> is odd</think><action>look</action>", Parsed("look", True)),
        ("<action>first <action>second</action>", Parsed("second", True)),
        ("<action>\n take \n key </action> trailing", Parsed("take key", True)),
        ("</action> go <action>", Parsed("</action> go <action>", False)),
        ("<action>go north", Parsed("<action>go north", False)),
        ("<action>  </action>", Parsed("<action>  </action>", False)),
        (" go north ", Parsed("go north", False)),
        ("", Parsed("", False)),
    ],
)
def test_the_last_closed_pair_is_the_action_and_anything_else_is_invalid(reply, parsed):
    assert Tagged(TaggedConfig()).parse(reply) == parsed


@given(st.text())
def test_parsing_never_raises_and_never_calls_nothing_valid(reply):
    for form in (FreeText(FreeTextConfig()), Tagged(TaggedConfig()), Tagged(TaggedConfig(tag="command", think=True))):
        action, valid = form.parse(reply)
        assert action or not valid


@given(st.text(st.characters(exclude_characters="<>", exclude_categories=("Cs", "Cc", "Zs", "Zl", "Zp")), min_size=1))
def test_a_rendered_action_is_parsed_back(action):
    for form in (FreeText(FreeTextConfig()), Tagged(TaggedConfig()), Tagged(TaggedConfig(tag="do-it"))):
        assert form.parse(form.render(action)) == Parsed(action, True)


def test_a_format_that_asks_for_tags_says_so():
    assert "<act> and </act>" in Tagged(TaggedConfig(tag="act")).hint()
    assert "<think>" in Tagged(TaggedConfig(think=True)).hint()
    assert FreeText(FreeTextConfig()).hint() == ""
