"""Several policies in one episode, with real engines that wait for each other."""

import asyncio

import pytest
import torch

from manyturn.agents.engine.batch_barrier import BatchBarrier
from manyturn.agents.engine.engine import Sampling
from manyturn.agents.engine.transformers_engine import TransformersEngine
from manyturn.agents.model.language_model import build_tiny
from manyturn.agents.play.agent import Agent, AgentConfig
from manyturn.agents.play.concurrent_episodes import gather
from manyturn.agents.play.demonstrations.demonstrator import Demonstrator
from manyturn.agents.play.demonstrations.scripted_policy import SCRIPTS, Scripted
from manyturn.agents.play.role_policy import Cast
from manyturn.agents.play.tokenizer_corpus import texts_of
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.envs.hosting.local.seats import InlineSeats, open_seats

SELF_PLAY = "manyturn/Talk-SelfPlay-v0"
SECRET = {"buyer": "It is worth {most} to you.", "seller": "It is worth {least} to you."}


@pytest.fixture(scope="module")
def policy():
    """Makes agents of the bargain's words; those of one barrier play the same episodes."""
    texts = asyncio.run(texts_of(InlineSeats(SELF_PLAY), AgentConfig(), tasks=8, seed=0))

    def make(seed: int, barrier: BatchBarrier) -> Agent:
        language = build_tiny(texts, seed, 1024, torch.device("cpu"), width=16)
        engine = TransformersEngine(language.model, language.template.end_ids, barrier=barrier)
        config = AgentConfig(instructions=False, max_context=1024)
        return Agent(config, language.template, engine, Sampling(max_tokens=6), f"seed {seed}")

    return make


def play(cast, episodes: int = 6, limit: int = 64):
    async def run():
        async with open_seats(SELF_PLAY, {"max_turns": 6}, limit=limit) as seats:
            tasks = seats.tasks("train")
            plan = [(tasks[i], EpisodeKey(0, "test", tasks[i].id, 0)) for i in range(episodes)]
            return await asyncio.wait_for(gather(seats, cast, plan, max_turns=6), 60)

    return asyncio.run(run())


def test_two_engines_neither_wait_for_each_other_for_ever_nor_depend_on_who_comes_first(policy):
    def both():
        barrier = BatchBarrier()
        return Cast({"buyer": policy(1, barrier), "seller": policy(2, barrier)})

    one, other = play(both()), play(both())
    assert [e.ending.is_error for e in one] == [False] * 6
    assert repr([(e.turns[0].reply, e.ledger) for e in one]) == repr([(e.turns[0].reply, e.ledger) for e in other])
    few = play(both(), limit=2)  # other rows share a batch, which moves no token
    assert [[b.ids for b in e.ledger.branches] for e in few] == [[b.ids for b in e.ledger.branches] for e in one]


@pytest.mark.parametrize("roles", [("one", "other"), ("one", "one"), ("one", "expert")])
def test_nobody_reads_what_only_the_other_side_knows(policy, roles):
    barrier = BatchBarrier()
    made = {"one": policy(1, barrier), "other": policy(2, barrier), **SCRIPTS}
    cast = Cast({agent: made[role] for agent, role in zip(SECRET, roles, strict=True)})
    template = made["one"].template
    for episode in play(cast):
        assert not episode.ending.is_error, episode.cause
        assert len(episode.ledger.spans) == len(episode.turns)
        secrets = {agent: text.format(**episode.task.params) for agent, text in SECRET.items()}
        for number, turn in enumerate(episode.turns):
            seen = template.decode(episode.ledger.prompt(number))
            if cast.roles[turn.role] is not SCRIPTS["expert"]:
                assert [agent for agent, secret in secrets.items() if secret in seen] == [turn.role]


def test_a_policy_without_tokens_leaves_turns_of_none(policy):
    cast = Cast({"buyer": policy(1, BatchBarrier()), "seller": SCRIPTS["random"]})
    for episode in play(cast):
        lengths = {(turn.role, len(episode.ledger.reply(n)) > 0) for n, turn in enumerate(episode.turns)}
        assert lengths <= {("buyer", True), ("seller", False)}


def test_demonstrations_of_a_cast_are_each_policys_own(policy):
    barrier, teacher = BatchBarrier(), Scripted(0.0)
    cast = Cast({agent: Demonstrator(policy(n, barrier), teacher) for n, agent in enumerate(SECRET)})
    for episode in play(cast):
        assert episode.success
        assert [b.role for b in episode.ledger.branches] == list(dict.fromkeys(turn.role for turn in episode.turns))


def test_chance_in_one_role_does_not_hang_on_the_other_role(policy):
    """A random seller draws the same first move whoever the buyer is, as long as it sees the same choices."""

    def first(buyer):
        episodes = play(Cast({"buyer": buyer, "seller": SCRIPTS["random"]}))
        return [e.turns[0].action for e in episodes if e.turns[0].role == "seller"]

    assert first(SCRIPTS["random"]) == first(SCRIPTS["expert"]) != []
