"""What no sound engine answers must never reach a ledger, whatever it is; what a sound one answers must."""

import asyncio
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from manyturn.agents.engine.engine import Capabilities, Engine, EngineError, EngineRefused, GivenReply, Reply, Sampling
from manyturn.agents.engine.reply_check import Checked
from manyturn.agents.play.agent import Agent, AgentConfig
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.envs.hosting.handle.env_handle import Answer

KEY = EpisodeKey(0, "test", "a task", 0)
LONGEST = 4


class Says(Engine):
    """An engine that answers with what it is given, or raises it."""

    vocabulary, version = 100, 0

    def __init__(self, *answers: Any, entropy: bool = False):
        self.answers, self.capabilities = list(answers), Capabilities(entropy=entropy)

    async def generate(self, *asked: Any) -> Any:
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer


def ask(template, *answers: Any) -> list[Reply]:
    checked = Checked(Says(*answers), template)

    async def turns() -> list[Reply]:
        checked.open(KEY)
        return [await checked.generate(KEY, turn, [5], Sampling(max_tokens=LONGEST)) for turn in range(len(answers))]

    return asyncio.run(turns())


@pytest.fixture
def good(tiny_template) -> Reply:
    return Reply([7, 8, tiny_template.end_id], [-0.5, -1.0, 5e-5], "stop", 3, [0.5, -5e-5, math.log(100)])


def test_what_a_sound_engine_answers_passes_as_it_is(tiny_template, good):
    for reply in (good, good._replace(entropies=None), Reply([7] * LONGEST, [-1.0] * LONGEST, "length", 3)):
        (passed,) = ask(tiny_template, reply)
        assert passed is reply


BROKEN = {
    "NaN": ({"logprobs": [-0.5, math.nan, -1.0]}, "nan cannot"),
    "infinite": ({"logprobs": [-0.5, math.inf, -1.0]}, "inf cannot"),
    "impossible": ({"logprobs": [-0.5, -math.inf, -1.0]}, "-inf cannot"),
    "above 0": ({"logprobs": [-0.5, 2e-4, -1.0]}, "0.0002 cannot"),
    "no number": ({"logprobs": [-0.5, "-1", -1.0]}, "'-1' cannot"),
    "too large to be a float": ({"logprobs": [-0.5, -(10**400), -1.0]}, "cannot"),
    "one log-probability short": ({"logprobs": [-0.5, -1.0]}, "3 tokens need a list of 3 log-probabilities, not 2"),
    "no log-probabilities": ({"logprobs": None}, "not NoneType"),
    "one entropy too many": ({"entropies": [0.5] * 4}, "3 tokens need a list of 3 entropies, not 4"),
    "negative entropy": ({"entropies": [0.5, -2e-4, 0.5]}, "-0.0002 cannot"),
    "more entropy than there is": ({"entropies": [0.5, 4.7, 0.5]}, "4.7 cannot"),
    "NaN entropy": ({"entropies": [0.5, math.nan, 0.5]}, "nan cannot"),
    "beyond the vocabulary": ({"ids": [7, 100, 8]}, "100 is none of the 100"),
    "negative": ({"ids": [7, -1, 8]}, "-1 is none"),
    "boolean": ({"ids": [7, True, 8]}, "True is none"),
    "number of five thousand digits": ({"ids": [7, 10**5000, 8]}, "ValueError"),
    "empty": ({"ids": [], "logprobs": [], "entropies": []}, "1 to 4 tokens, not 0"),
    "too long": ({"ids": [7] * 5, "logprobs": [-1.0] * 5}, "1 to 4 tokens, not 5"),
    "no list": ({"ids": "abc"}, "not str"),
    "cut without an end": ({"ids": [7, 8, 9]}, "'stop' after 3 of 4 tokens"),
    "cut and ended": ({"finish": "length"}, "'length' after 3 of 4"),
    "broken off": ({"ids": [7, 8, 9], "finish": "length"}, "'length' after 3 of 4"),
    "neither": ({"finish": None}, "None after"),
    "version": ({"version": -1}, "version -1 after version 0"),
    "fractional version": ({"version": 3.0}, "version 3.0"),
}


@pytest.mark.parametrize("change, told", BROKEN.values(), ids=BROKEN)
def test_what_no_sound_engine_answers_is_an_engine_error(tiny_template, good, change, told):
    with pytest.raises(EngineError) as caught:
        ask(tiny_template, good._replace(**change))
    assert told in str(caught.value) and "\n" not in str(caught.value)


def test_entropies_that_were_promised_are_not_left_out(tiny_template, good):
    """A run whose method needs them was let through because of the promise."""
    checked = Checked(Says(good._replace(entropies=None), entropy=True), tiny_template)
    checked.open(KEY)
    with pytest.raises(EngineError, match="3 tokens need a list of 3 entropies, not NoneType"):
        asyncio.run(checked.generate(KEY, 0, [5], Sampling(max_tokens=LONGEST)))


def test_nothing_may_follow_an_end_token(tiny_template, good):
    with pytest.raises(EngineError, match="goes on after an end token"):
        ask(tiny_template, good._replace(ids=[7, tiny_template.end_id, tiny_template.end_id]))


@pytest.mark.parametrize(
    "answer", [None, ([7], [-1.0], "stop", 0), RuntimeError("boom"), KeyError("x"), TimeoutError()]
)
def test_an_engine_that_answers_or_raises_something_else_ends_the_episode_and_not_the_run(tiny_template, answer):
    with pytest.raises(EngineError):
        ask(tiny_template, answer)


def test_a_cancelled_episode_is_cancelled_and_not_an_error(tiny_template):
    with pytest.raises(asyncio.CancelledError):
        ask(tiny_template, asyncio.CancelledError())


def test_versions_never_go_back_within_an_episode_and_a_new_attempt_starts_afresh(tiny_template, good):
    assert [reply.version for reply in ask(tiny_template, good, good, good._replace(version=5))] == [3, 3, 5]
    with pytest.raises(EngineError, match=r"turn 1.*version 2 after version 3"):
        ask(tiny_template, good, good._replace(version=2))
    checked = Checked(Says(good, good._replace(version=2)), tiny_template)

    async def twice() -> list[int]:
        versions = []
        for _ in range(2):
            checked.open(KEY)
            versions.append((await checked.generate(KEY, 0, [5], Sampling(max_tokens=LONGEST))).version)
            checked.close(KEY)
        return versions

    assert asyncio.run(twice()) == [3, 2]


_odd = some.one_of(
    some.none(), some.booleans(), some.integers(-3, 120), some.floats(), some.text(max_size=3), some.just(10**400)
)
_odd_lists = some.lists(some.one_of(some.integers(0, 99), some.floats(-3, 0.1), _odd), max_size=6)


def _four(low: float, high: float) -> some.SearchStrategy:
    return some.lists(some.floats(low, high), min_size=LONGEST, max_size=LONGEST)


@settings(max_examples=300, deadline=None)
@given(
    ids=some.lists(some.integers(4, 99), min_size=LONGEST, max_size=LONGEST) | _odd_lists,
    logprobs=_four(-1e6, 1e-4) | _odd_lists,
    entropies=_four(-1e-4, math.log(100)) | _odd_lists,
    finish=some.just("length") | _odd,
    version=some.integers(0) | _odd,
)
@pytest.mark.deep
def test_whatever_passes_can_be_learnt_from(tiny_template, ids, logprobs, entropies, finish, version):
    try:
        (reply,) = ask(tiny_template, Reply(ids, logprobs, finish, version, entropies))
    except EngineError:
        return
    assert len(reply.ids) == len(reply.logprobs) == len(reply.entropies) > 0
    assert all(type(token) is int and 0 <= token < 100 for token in reply.ids)
    assert all(-math.inf < value <= 1e-4 for value in reply.logprobs)
    assert all(-1e-4 <= value < 4.62 for value in reply.entropies)


def test_a_refused_reply_leaves_no_trace_in_the_ledger(tiny_template, good):
    engine = Says(good, good._replace(logprobs=[math.nan] * 3))
    agent = Agent(AgentConfig(), tiny_template, engine, Sampling(max_tokens=LONGEST))
    player = agent.player(KEY, "Rules.")

    async def two_turns() -> None:
        await player.act(Answer("look"), None)  # type: ignore[arg-type]  # the seat is the expert's business
        with pytest.raises(EngineError):
            await player.act(Answer("look"), None)  # type: ignore[arg-type]

    asyncio.run(two_turns())
    assert len(player.ledger.spans) == 1 and player.ledger.reply(0) == good.ids
    assert len(player.ledger.branches[0].ids) == player.ledger.spans[0].end


@pytest.mark.parametrize(
    "scores", [None, [[-1.0]], [[-1.0, -2.0], [0.5]], [[-1.0, math.nan], [-1.0]], [[-1.0, "-2"], [-1.0]], ValueError()]
)
def test_scores_that_no_sound_engine_gives_are_errors_and_one_without_scores_says_so(tiny_template, scores):
    class Scores(Says):
        async def score(self, replies, temperature=1.0):
            if isinstance(scores, BaseException):
                raise scores
            return scores

    given = [GivenReply([5], [6, 7]), GivenReply([5], [6])]
    with pytest.raises(EngineError):
        asyncio.run(Checked(Scores(), tiny_template).score(given))
    with pytest.raises(EngineRefused, match=r"engine\.name"):
        asyncio.run(Checked(Says(), tiny_template).score(given))
