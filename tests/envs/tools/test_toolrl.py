"""ToolRL's reward must be the authors', and hostile replies must get the worst of it and not an exception."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyturn.envs.tools.toolrl import correctness, toolrl_reward

CALL = st.tuples(st.sampled_from("abc"), st.dictionaries(st.sampled_from("xyz"), st.integers(0, 2)))


def test_the_authors_numbers(golden) -> None:
    for case in golden("toolrl_reward")["cases"]:
        found = toolrl_reward(case["inputs"]["response"], case["inputs"]["ground_truth"])
        expected = case["expected"]
        assert found.format == expected["format"], case["name"]
        assert found.correctness == pytest.approx(expected["correctness"], abs=1e-6), case["name"]
        assert found.total == pytest.approx(expected["total"], abs=1e-6), case["name"]


@given(st.lists(CALL, max_size=4), st.lists(CALL, min_size=1, max_size=4))
def test_correctness_is_best_for_the_same_calls_alone_and_never_outside_its_range(made: list, wanted: list) -> None:
    assert -3 <= correctness(made, wanted) <= 3
    assert correctness(wanted[::-1], wanted) == pytest.approx(3)
    if sorted(map(repr, made)) != sorted(map(repr, wanted)):
        assert correctness(made, wanted) < 3 or len(made) > len(wanted)


@pytest.mark.parametrize(
    "block",
    ["", "[]", "{}", '{"name": 1, "parameters": {}}', '{"name": ["a"], "parameters": {}}', "[" * 100_000, "NaN"],
)
def test_calls_that_cannot_be_read_get_the_worst(block: str) -> None:
    reference = '<think>t</think>\n<tool_call>\n{"name": "a", "parameters": {}}\n</tool_call>'
    assert toolrl_reward(f"<think>t</think>\n<tool_call>\n{block}\n</tool_call>", reference).total == -2.0
