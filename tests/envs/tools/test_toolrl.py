"""ToolRL's reward must be the authors', and hostile calls must get the worst of it and not an exception."""

import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from manyturn.envs.contract.environments import make
from manyturn.envs.contract.task import Task
from manyturn.envs.contract.text_env import TextEnv
from manyturn.envs.contract.turn_reward import WrapperMismatch, wrap
from manyturn.envs.hosting.host import Host
from manyturn.envs.tools.calls import calls_text
from manyturn.envs.tools.toolrl import correctness

pytestmark = pytest.mark.versions

CALL = st.tuples(st.sampled_from("abc"), st.dictionaries(st.sampled_from("xyz"), st.integers(0, 2)))
UNSCALED = [{"name": "toolrl", "scale": 1.0}]


class Office(TextEnv):
    """Whatever is called is done; the expert does what it was made with."""

    tools = ({"type": "function"},)

    def __init__(self, expert: str):
        super().__init__()
        self._expert = expert

    def tasks(self, split: str) -> list[Task]:
        return [Task(f"{split}/0", split, {"split": split})]

    def begin(self, task: Task, rng: Any) -> str:
        return "Work."

    def respond(self, action: str) -> Any:
        return self.go_on("Done.")

    def expert(self) -> str:
        return self._expert


def paid(action: str, expert: str) -> dict[str, float]:
    env = wrap(Office(expert), UNSCALED)
    env.reset(seed=0)
    return env.step(action)[-1]["reward_parts"]


def ours(reply: str) -> str:
    """The calls of an authors' reply as an action of ours: arguments, not parameters; text as it is."""
    block = reply.partition("<tool_call>")[2].partition("</tool_call>")[0].strip()
    if not block:
        return reply
    try:
        calls = [json.loads(line) for line in block.split("\n")]
    except ValueError:
        return block
    return calls_text((call["name"], call["parameters"]) for call in calls)


def test_the_authors_numbers(golden) -> None:
    for case in golden("toolrl_reward")["cases"]:
        parts = paid(*(ours(case["inputs"][name]) for name in ("response", "ground_truth")))
        assert parts.get("toolrl", 0.0) == pytest.approx(case["expected"]["correctness"], abs=1e-6), case["name"]


def canonical(call: tuple[str, dict[str, int]]) -> str:
    """A call as text, whatever the order of its arguments: that makes no other call."""
    return json.dumps(call, sort_keys=True)


@settings(deadline=None)
@example([("a", {"x": 0, "y": 1})], [("a", {"y": 1, "x": 0})])
@given(st.lists(CALL, max_size=4), st.lists(CALL, min_size=1, max_size=4))
def test_correctness_is_best_for_the_same_calls_alone_and_never_outside_its_range(made: list, wanted: list) -> None:
    assert -3 <= correctness(made, wanted) <= 3
    assert correctness(wanted[::-1], wanted) == pytest.approx(3)
    if sorted(map(canonical, made)) != sorted(map(canonical, wanted)):
        assert correctness(made, wanted) < 3 or len(made) > len(wanted)


@pytest.mark.parametrize(
    "action",
    ["{}", "[]", '{"name": 1, "arguments": {}}', '{"name": ["a"], "arguments": {}}', "[{" * 50_000, '[{"name": NaN}]'],
)
def test_calls_that_cannot_be_read_get_the_worst(action: str) -> None:
    assert paid(action, '{"name": "a", "arguments": {}}') == {"toolrl": -3.0}
    assert paid(action, "Goodbye.") == {}, "where the expert calls nothing there is nothing to compare with"


def test_the_experts_calls_of_a_desk_are_paid_best_and_a_wrong_one_less() -> None:
    env = wrap(make("manyturn/Desk-v0", users=200, difficulty="tiny"), ["toolrl"])
    env.reset(seed=1)
    wrong = env.step('{"name": "get_user", "arguments": {"user_id": "C0"}}')
    right = env.step(env.unwrapped.expert())
    assert right[-1]["reward_parts"]["toolrl"] == pytest.approx(0.3)
    assert right[1] == pytest.approx(sum(right[-1]["reward_parts"].values()))
    assert -0.31 < wrong[-1]["reward_parts"]["toolrl"] < 0.2


def test_an_environment_without_tools_is_refused() -> None:
    with pytest.raises(WrapperMismatch, match="leave out the wrapper toolrl"):
        Host("manyturn/Maze-v0", wrappers=UNSCALED)
