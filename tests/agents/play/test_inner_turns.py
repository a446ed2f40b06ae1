"""An inner turn that reached the environment would be an action that nobody chose."""

import asyncio
from itertools import pairwise

import pytest
from tiny_engine import make_engine

from manyturn.agents.engine.engine import Sampling
from manyturn.agents.play.agent import Agent, AgentConfig
from manyturn.agents.play.concurrent_episodes import gather
from manyturn.agents.play.demonstrations.demonstrator import Demonstrator
from manyturn.agents.play.demonstrations.scripted_policy import SCRIPTS
from manyturn.agents.play.episode import Ending
from manyturn.agents.records.plain_episode import episode_from_plain, episode_to_plain
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.envs.hosting.local.seats import open_seats

MAZE = "manyturn/Maze-v0"
KINDS = {"planning": ["plan"], "self_critique": ["draft", "critique"]}


def episodes(language, demonstrated=False, turns=5, sampled=6, **options):
    """Four maze episodes of a tiny model, or of the expert as it would play."""
    config = AgentConfig(instructions=False, **options)
    agent = Agent(config, language.template, make_engine(language), Sampling(max_tokens=sampled))

    async def run():
        async with open_seats(MAZE, limit=4) as seats:
            plan = [(task, EpisodeKey(0, "test", task.id, 0)) for task in seats.tasks("train")[:4]]
            policy = Demonstrator(agent, SCRIPTS["expert"]) if demonstrated else agent
            return await gather(seats, policy, plan, max_turns=turns)

    return asyncio.run(run())


@pytest.mark.parametrize("name", KINDS)
def test_the_environment_sees_actions_alone_and_a_limit_counts_them_alone(tiny, name):
    for episode in episodes(tiny(), inner={"name": name, "tokens": 4}):
        assert episode.ending is Ending.TRUNCATED and episode.cause == "turns" and episode.actions == 5
        assert [turn.inner for turn in episode.turns] == [*KINDS[name], ""] * 5
        for number, turn in enumerate(episode.turns):
            reply = episode.ledger.reply(number)
            assert len(reply) <= (4 if turn.inner else 6) and turn.usage.reply_tokens == len(reply)
            if turn.inner:
                assert turn.valid and not turn.action and not turn.reward and turn.progress is None
        assert len(episode.ledger.spans) == len(episode.turns)
        assert len(episode.ledger.branches) == 1, "each prompt goes on from the reply before it"
        assert episode_from_plain(episode_to_plain(episode), episode.task).turns == episode.turns


def test_every_other_action_has_a_plan(tiny):
    [episode, *_] = episodes(tiny(), inner={"name": "planning", "tokens": 4, "every": 2})
    assert [turn.inner for turn in episode.turns] == ["plan", "", "", "plan", "", "", "plan", ""]
    assert [turn.observation for turn in episode.turns if not turn.inner].count("Now act.") == 3


def test_a_summary_takes_the_place_of_what_came_before_it(tiny):
    language = tiny()
    decode, room = language.template.tokenizer.decode, 220
    played = episodes(language, turns=40, max_context=room, context={"name": "summary", "tokens": 12, "summaries": 30})
    for episode in played:
        summaries = [number for number, turn in enumerate(episode.turns) if turn.inner]
        assert {turn.inner for turn in episode.turns} == {"summary", ""} and len(summaries) > 2
        assert len(episode.ledger.branches) == len(summaries) + 1
        for number in range(len(episode.turns)):
            assert len(episode.ledger.prompt(number)) + len(episode.ledger.reply(number)) <= room
        for number in summaries[:-1]:
            after, text = decode(episode.ledger.prompt(number + 1)), episode.turns[number].reply.strip()
            assert text in after and episode.turns[0].observation in after
            assert (
                episode.turns[number + 1].observation in after and len(episode.ledger.prompt(number + 1)) < room / 1.2
            )


def test_an_episode_that_needs_one_summary_more_is_truncated(tiny):
    [episode, *_] = episodes(
        tiny(), turns=50, max_context=220, context={"name": "summary", "tokens": 12, "summaries": 2}
    )
    assert (episode.ending, episode.cause) == (Ending.TRUNCATED, "context")
    assert sum(turn.inner == "summary" for turn in episode.turns) == 2


def test_a_summary_never_falls_between_a_plan_and_its_action(tiny):
    context = {"name": "summary", "tokens": 12, "summaries": 30}
    for episode in episodes(
        tiny(), turns=24, max_context=260, context=context, inner={"name": "planning", "tokens": 6}
    ):
        kinds = [turn.inner for turn in episode.turns]
        assert "summary" in kinds
        assert all(after == "" for kind, after in pairwise(kinds) if kind == "plan")


@pytest.mark.parametrize("name", KINDS)
def test_the_expert_demonstrates_inner_turns_of_what_it_does_next(tiny, name):
    for episode in episodes(tiny(), True, turns=9, sampled=12, max_context=900, inner={"name": name, "tokens": 12}):
        assert episode.success and [turn.inner for turn in episode.turns][: len(KINDS[name])] == KINDS[name]
        action = ""
        for turn in reversed(episode.turns):
            action = turn.action or action
            if turn.inner in ("plan", "critique"):
                assert action in turn.reply or turn.reply == "It is right."
