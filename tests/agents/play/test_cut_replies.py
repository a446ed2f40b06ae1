"""Half of a reply acts: an amount of 1250 that is cut to 12 is paid."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manyturn.agents.engine.engine import Capabilities, Engine, Reply, Sampling
from manyturn.agents.play.agent import Agent, AgentConfig
from manyturn.agents.play.concurrent_episodes import gather
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.envs.contract.env.text_env import TextEnv
from manyturn.envs.contract.registration.id_registration import register
from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.hosting.local.seats import open_seats

HEARD: list[str] = []


class Till(TextEnv):
    """Hears every action."""

    max_turns = 3

    def tasks(self, split):
        return [Task(f"{split}/0", split, {"split": split})]

    def begin(self, task, rng):
        return "Pay 1250."

    def respond(self, action):
        HEARD.append(action)
        return self.succeed("Paid.")


register("tests/Till-v0", Till)


class Parrot(Engine):
    """Says one reply, as far as the limit of tokens lets it."""

    def __init__(self, template, reply: str):
        self.ids, self.version = template.reply(reply), 0
        self.vocabulary, self.capabilities = len(template.tokenizer), Capabilities()

    async def generate(self, key, turn, prompt_ids, sampling):
        ids = self.ids[: sampling.max_tokens]
        finish = "stop" if len(ids) == len(self.ids) else "length"
        return Reply(ids, [0.0] * len(ids), finish, 0)

    async def load(self, weights, version):
        raise AssertionError("nothing is learnt")


def play(template, reply: str, limit: int, **options):
    agent = Agent(
        AgentConfig(max_context=65536, **options), template, Parrot(template, reply), Sampling(max_tokens=limit)
    )

    async def run():
        async with open_seats("tests/Till-v0") as seats:
            [task] = seats.tasks("test")
            [episode] = await gather(seats, agent, [(task, EpisodeKey(0, "test", task.id, 0))], max_turns=50)
            return episode

    HEARD.clear()
    return asyncio.run(run())


CALL = '{"name": "pay", "arguments": {"amount": 1250}}'
REPLIES = {
    "free_text": "pay 1250",
    "tagged": "<think>So much?</think><action>pay 1250</action> and <action>go</action>",
    "tool_call": f"<tool_call>{CALL}</tool_call><tool_call>{CALL}</tool_call>",
}


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(sorted(REPLIES)), st.data())
def test_no_prefix_of_a_reply_acts(tiny_template, name, data):
    count = len(tiny_template.reply(REPLIES[name]))
    limit = data.draw(st.integers(1, count))
    episode = play(tiny_template, REPLIES[name], limit, format={"name": name})
    if limit == count:
        assert len(HEARD) == 1 and episode.success and not episode.turns[0].usage.cut
        return
    assert HEARD == [] and episode.success is False and (episode.ending, episode.cause) == ("truncated", "turns")
    first, second, third = episode.turns
    assert [turn.action for turn in episode.turns] == [""] * 3 and not first.valid and first.fault == "cut"
    assert (
        second.observation
        == third.observation
        == f"Your reply was cut at {limit} tokens; nothing was done.\n\nPay 1250."
    )
    assert first.anchor == third.anchor, "the situation is the same"


def test_a_cut_reply_ends_the_episode_where_that_is_asked_for(tiny_template):
    episode = play(tiny_template, REPLIES["free_text"], 2, cut="end")
    assert (episode.ending, episode.cause, len(episode.turns), HEARD) == ("truncated", "cut", 1, [])


@pytest.mark.parametrize(("budget", "turns"), [(2, 1), (3, 2), (100, 3)])
def test_an_episode_says_no_more_tokens_than_its_budget(tiny_template, budget, turns):
    episode = play(tiny_template, REPLIES["free_text"], 2, max_episode_tokens=budget)
    assert len(episode.turns) == turns and sum(turn.usage.reply_tokens for turn in episode.turns) <= budget
    assert episode.cause == ("turns" if budget == 100 else "tokens")
