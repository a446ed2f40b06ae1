"""Choice decoding within whole episodes: what is drawn, with what probability, and what is refused."""

import asyncio
import itertools
import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_engine import key, make_engine, within

from manyturn.agents.engine.engine import EngineError, Sampling
from manyturn.agents.model.language_model import LanguageModel
from manyturn.agents.play.agent import Agent, AgentConfig
from manyturn.agents.play.concurrent_episodes import Patience, gather
from manyturn.agents.play.endpoint.policy import Endpoint, EndpointSampling, OpenAIPolicy
from manyturn.agents.text.choice_decoding import Choices, NoChoice, ReplyChoices
from manyturn.agents.text.formats.free_text import FreeText, FreeTextConfig
from manyturn.agents.text.formats.tagged import Tagged, TaggedConfig
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.envs.hosting.local.seats import open_seats

LIMITED = AgentConfig(only_admissible=True, instructions=False)
REPLIES = st.sets(st.lists(st.integers(1, 5), max_size=5).map(lambda ids: (*ids, 0)), min_size=1, max_size=12)


def brute_force(language: LanguageModel, prompt: list[int], replies: Sequence[Sequence[int]], heat: float):
    """Reply -> log-probability of each of its tokens, by a pass over all of it and a sum over what could go on."""
    found = {}
    for reply in replies:
        with torch.no_grad():
            logits = language.model(torch.tensor([[*prompt, *reply]])).logits[0].double().numpy() / heat
        scores = []
        for place, token in enumerate(reply):
            row = logits[len(prompt) + place - 1]
            possible = {other[place] for other in replies if tuple(other[:place]) == tuple(reply[:place])}
            scores.append(row[token] - np.log(sum(np.exp(row[other]) for other in possible)))
        found[tuple(reply)] = scores
    return found


async def chosen(engine, prompt, choices, members, sampling):
    """A reply for each member, drawn together."""
    for member in members:
        engine.open(key(member))
    replies = await asyncio.gather(*(engine.choose(key(m), 0, prompt, sampling, choices) for m in members))
    for member in members:
        engine.close(key(member))
    return replies


def some_choices(language: LanguageModel) -> Choices:
    commands = ("go north", "go", "go east", "take key", "take key 2", "look", "go north", "open the chest")
    return ReplyChoices(FreeText(FreeTextConfig()), language.template).of(commands)


# ---- the trie -----------------------------------------------------------------------------------------------


@settings(max_examples=100, deadline=None)
@given(REPLIES)
def test_what_is_possible_is_what_leads_to_a_reply_and_nothing_else(replies):
    choices = Choices(replies)
    assert choices.replies == tuple(sorted(replies))
    for ids in itertools.chain(replies, [(1, 2), (5, 5, 5, 5, 5, 5, 0), (0, 0)]):
        expected = [
            tuple(sorted({other[i] for other in replies if other[:i] == ids[:i] and len(other) > i}))
            for i in range(len(ids))
        ]
        assert choices.along(ids) == (expected if ids in replies else None)


def test_a_reply_that_begins_another_is_refused_where_nothing_tells_its_end():
    with pytest.raises(ValueError, match="begins another"):
        Choices([[4, 5], [4]])
    with pytest.raises(ValueError, match="one reply"):
        Choices([])


def test_commands_are_written_once_each_in_the_tokenizers_own_way(tiny):
    language = tiny()
    choices = some_choices(language)
    written = {tuple(language.template.reply(command)) for command in ("go", "go north", "take key")}
    assert written <= set(choices.replies) and len(choices.replies) == 7  # one was listed twice


@pytest.mark.parametrize("command", [" go", "go  north", "", "go\tnorth", "say <|end|>"])
def test_a_command_that_no_reply_can_mean_is_named(tiny, command):
    commands = ReplyChoices(Tagged(TaggedConfig()), tiny().template)
    with pytest.raises(NoChoice, match="which no reply can mean"):
        commands.of(["go", command])


# ---- what is drawn ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("heat", [1.0, 0.5])
def test_replies_are_drawn_as_often_as_the_renormalised_distribution_says(tiny, heat):
    language = tiny()
    choices, prompt, count = some_choices(language), language.template.opening("", "Where to?"), 600
    sampling = Sampling(max_tokens=20, temperature=heat)
    replies = within(120, chosen(make_engine(language), prompt, choices, range(count), sampling))
    expected = brute_force(language, prompt, choices.replies, heat)
    assert math.fsum(math.exp(sum(scores)) for scores in expected.values()) == pytest.approx(1, abs=1e-5)
    for reply in replies[:200]:
        assert np.allclose(reply.logprobs, expected[tuple(reply.ids)], atol=3e-5)
        assert reply.finish == "stop"
    drawn = Counter(tuple(reply.ids) for reply in replies)
    for ids, scores in expected.items():
        share = math.exp(sum(scores))
        assert abs(drawn[ids] - count * share) < 4.5 * math.sqrt(count * share * (1 - share)) + 1
    assert len(drawn) > 1


def test_temperature_zero_takes_the_likeliest_possible_token(tiny):
    language = tiny()
    choices, prompt = some_choices(language), language.template.opening("", "Where to?")
    [reply] = within(60, chosen(make_engine(language), prompt, choices, [0], Sampling(max_tokens=20, temperature=0)))
    place, ids = choices.first, list[int]()
    while place.allowed:
        with torch.no_grad():
            logits = language.model(torch.tensor([[*prompt, *ids]])).logits[0, -1]
        ids.append(max(place.allowed, key=lambda token: float(logits[token])))
        place = place.after(ids[-1])
    assert reply.ids == ids


def test_limited_and_free_replies_share_passes_and_neither_changes_the_other(tiny):
    language = tiny()
    choices, prompt = some_choices(language), language.template.opening("", "Where to?")
    sampling = Sampling(max_tokens=20)

    async def both(engine, limited, free):
        for member in (*limited, *free):
            engine.open(key(member))
        asked = [engine.choose(key(m), 0, prompt, sampling, choices) for m in limited]
        asked += [engine.generate(key(m), 0, prompt, sampling) for m in free]
        return [reply.ids for reply in await asyncio.gather(*asked)]

    together = within(60, both(make_engine(language), range(8), range(8, 16)))
    apart = within(60, both(make_engine(language), range(8), ()))
    apart += within(60, both(make_engine(language), (), range(8, 16)))
    assert together == apart
    assert all(choices.along(ids) for ids in together[:8]) and not all(choices.along(ids) for ids in together[8:])


@pytest.mark.parametrize("options", [{}, {"reproducible": False}, {"max_batch": 3}, {"cache_bytes": 300_000}])
def test_whole_episodes_are_limited_and_equal_however_they_are_batched(tiny, rollout, options):
    language = tiny()
    expected = rollout(language, make_engine(language), config=LIMITED)
    episodes = rollout(language, make_engine(language, **options), config=LIMITED)
    for ours, first in zip(episodes, expected, strict=True):
        assert ours.ledger.branches[0].ids == first.ledger.branches[0].ids
        assert ours.ledger.branches[0].allowed == first.ledger.branches[0].allowed
    assert all(turn.valid for episode in episodes for turn in episode.turns)
    said = [ids for episode in episodes for ids in episode.ledger.branches[0].allowed.values()]
    assert max(map(len, said)) > 1 and min(map(len, said)) == 1


def test_forced_tokens_cost_no_pass_and_have_probability_one(tiny):
    language = tiny()
    tagged = ReplyChoices(Tagged(TaggedConfig()), language.template)
    prompt, sampling = language.template.opening("", "Where to?"), Sampling(max_tokens=64)
    engine = make_engine(language)
    passes = 0
    advance = engine._decoder.advance

    def counted(rows):
        nonlocal passes
        passes += 1
        return advance(rows)

    engine._decoder.advance = counted
    choices = tagged.of(["go north", "go south"])
    [reply] = within(60, chosen(engine, prompt, choices, [0], sampling))
    branchings = [i for i, allowed in enumerate(choices.along(reply.ids)) if len(allowed) > 1]
    assert len(branchings) == 1 and passes == 1 and len(reply.ids) > 10
    assert [p for i, p in enumerate(reply.logprobs) if i not in branchings] == [0.0] * (len(reply.ids) - 1)
    assert reply.logprobs[branchings[0]] < 0 < reply.entropies[branchings[0]]
    [alone] = within(60, chosen(engine, prompt, tagged.of(["go north"]), [1], sampling))
    assert passes == 1 and sum(alone.logprobs) == 0 == sum(alone.entropies)
    [after] = within(60, chosen(engine, [*prompt, *alone.ids, *prompt], choices, [1], sampling))
    expected = brute_force(language, [*prompt, *alone.ids, *prompt], choices.replies, 1.0)
    assert np.allclose(after.logprobs, expected[tuple(after.ids)], atol=1e-5)


def test_a_choice_longer_than_a_reply_may_be_is_refused_with_the_length_that_fits(tiny, rollout):
    language = tiny()
    config = LIMITED.model_copy(update={"format": TaggedConfig()})
    episodes = rollout(language, make_engine(language), config=config, episodes=2, sampling=Sampling(max_tokens=3))
    assert all("sampling.max_tokens = 3: give --sampling.max-tokens" in episode.cause for episode in episodes)
    with pytest.raises(EngineError, match="a choice of"):
        within(60, chosen(make_engine(language), [1, 2], some_choices(language), [0], Sampling(max_tokens=2)))


# ---- who cannot be limited ----------------------------------------------------------------------------------


def test_an_endpoint_and_a_format_with_reasoning_are_refused_by_name(tiny):
    config = AgentConfig(only_admissible=True)
    with pytest.raises(ValueError, match=r"which an endpoint does not let us: leave it out"):
        OpenAIPolicy("gpt", config, EndpointSampling(), Endpoint(base_url="http://localhost:1"))
    language = tiny()
    thinks = AgentConfig(only_admissible=True, format=TaggedConfig(think=True))
    with pytest.raises(ValueError, match=r"agent\.format\.think = false"):
        Agent(thinks, language.template, make_engine(language), Sampling())


@pytest.mark.parametrize("workers", [0, 1])
def test_an_episode_without_admissible_commands_ends_in_an_error_that_names_the_environment(tiny, workers):
    language = tiny()

    async def run():
        async with open_seats(f"{Path(__file__).with_name('mute_door.py')}:MuteDoor", workers=workers) as seats:
            agent = Agent(AgentConfig(only_admissible=True), language.template, make_engine(language), Sampling())
            task = seats.tasks("train")[0]
            return await gather(
                seats, agent, [(task, EpisodeKey(0, "test", task.id, 0))], max_turns=4, patience=Patience(1, 1.0)
            )

    [episode] = asyncio.run(run())
    assert "MuteDoor lists no admissible command here, which agent.only_admissible chooses from" in episode.cause
    assert len(episode.turns) == 1
