"""What a user asks of its tools is bounded, and nothing that it writes breaks the environment."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyturn.envs.tools.toolset import Toolset
from manyturn.envs.users.protocol import NOTHING, Heard, User, UserError
from manyturn.envs.users.tool_use import spoken


class Asker(User):
    """Asks for the given calls, round by round, then speaks."""

    name = "asker"

    def __init__(self, rounds: Sequence[Sequence[str]]):
        self.rounds, self.seen = list(rounds), list[str]()

    def begin(self, task: Any, rng: Any) -> str:
        return ""

    def hear(self, text: str, cue: Mapping[str, Any] = NOTHING) -> Heard:
        return Heard("", calls=self.rounds.pop(0)) if self.rounds else Heard("Well.")

    def see(self, results: Sequence[str]) -> Heard:
        self.seen += results
        return self.hear("")

    def save(self) -> Any:
        return None

    def load(self, state: Any) -> None:
        pass


def add(number: int) -> int:
    """Add one.

    Args:
        number: to this.
    """
    return number + 1


TOOLS = Toolset([add], most_calls=1)
CALL = '{"name": "add", "arguments": {"number": 1}}'


def test_a_user_sees_the_result_of_each_call_before_it_speaks():
    user = Asker([[CALL, CALL], [CALL]])
    heard, rounds = spoken(user, user.hear("Add."), TOOLS)
    assert heard == Heard("Well.") and [len(one) for one in rounds] == [2, 1] and user.seen == ["2"] * 3


@given(st.lists(st.integers(1, 5), max_size=8))
def test_the_bound_is_on_the_calls_of_a_turn(sizes):
    user, most = Asker([[CALL] * size for size in sizes]), 12
    if sum(sizes) <= most:
        assert sum(map(len, spoken(user, user.hear(""), TOOLS, most).rounds)) == sum(sizes)
    else:
        with pytest.raises(UserError, match="more than 12 calls"):
            spoken(user, user.hear(""), TOOLS, most)
        assert len(user.seen) <= most


@given(st.lists(st.text(max_size=80) | st.just(CALL), min_size=1, max_size=5))
def test_every_text_of_a_call_is_answered(calls):
    user = Asker([calls])
    _, (answers,) = spoken(user, user.hear(""), TOOLS)
    assert [one.valid for one in answers] == [call == CALL for call in calls]
    assert user.seen == [one.text for one in answers]


def test_a_user_without_tools_has_nothing_to_see():
    class Mute(Asker):
        see = User.see

    with pytest.raises(UserError, match="asked for no calls"):
        Mute([]).see(["x"])
