"""Tools named in instructions must come out of them unchanged."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyturn.envs.tools.tool_prompt import taken_out, told

pytestmark = pytest.mark.versions

SCHEMA = st.builds(
    lambda name, text: {"type": "function", "function": {"name": name, "description": text, "parameters": {}}},
    st.text(),
    st.text(),
)


@given(st.text(), st.lists(SCHEMA, max_size=3), st.text())
def test_tools_are_taken_out_again(rules: str, tools: list[dict], hint: str) -> None:
    assert taken_out(told(rules, tools) + hint) == (rules + hint, tuple(tools))


def test_text_without_a_whole_block_stays_as_it_is() -> None:
    head = "Rules.\n\nYou may call these tools:\n<tools>\n"
    for text in ("", "Rules.", head + "{", head + "{\n</tools>"):
        assert taken_out(text) == (text, ())
