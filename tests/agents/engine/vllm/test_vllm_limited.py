"""Choice decoding with vLLM itself: replies that are no command, or whose probabilities are not the learner's."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from test_vllm_runs import TINY
from tiny_for_vllm import KEY, LONG, changed, choices_of, gap, limited_gap

from manyturn.agents.engine.engine import EngineError, Reply, Sampling
from manyturn.agents.engine.engine_config import EngineContext, build_engine
from manyturn.agents.engine.vllm.engine import VllmEngine
from manyturn.agents.engine.vllm.options import VllmConfig
from manyturn.agents.play.agent import Agent, AgentConfig
from manyturn.agents.play.concurrent_episodes import Patience, gather
from manyturn.envs.contract.options.overlay import overlay
from manyturn.envs.hosting.local.seats import open_seats
from manyturn.trainers.recipe.config import configure
from manyturn.trainers.record.run_folder import read_metrics
from manyturn.trainers.run.loop.loop import train

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def engine(vllm_package, language, run) -> Iterator[VllmEngine]:
    made = build_engine(VllmConfig(kv_gib=0.25), EngineContext(language.model, language.template.end_ids))
    assert isinstance(made, VllmEngine)
    yield made
    run(made.shutdown())


def test_each_reply_is_a_command_with_the_probability_that_the_learner_says(language, engine, run):
    """Next to replies that are not limited, in one batch, before and after a transfer."""
    choices = choices_of(language, "go north", "go south", "go", "look", "take red key")
    keys = [KEY._replace(member=member) for member in range(24)]

    async def together(heat: float) -> tuple[list[Reply], list[Reply]]:
        sampling = Sampling(max_tokens=12, temperature=heat)
        limited = [engine.choose(key, 0, LONG, sampling, choices) for key in keys]
        free = [engine.generate(key._replace(stage="free"), 0, LONG, sampling) for key in keys[:4]]
        replies = await asyncio.gather(*limited, *free)
        return replies[: len(keys)], replies[len(keys) :]

    for version in (0, 3):
        if version:
            run(engine.load(changed(language, version), version))
        limited, free = run(together(1.0))
        assert max(limited_gap(language, reply, choices) for reply in limited) < 1e-3
        assert max(gap(language, reply) for reply in free) < 1e-3
        assert len({tuple(reply.ids) for reply in limited}) > 2 and {reply.finish for reply in limited} == {"stop"}
        told = [pair for reply in limited for pair in zip(choices.along(reply.ids) or (), reply.logprobs, strict=True)]
        assert {logprob for allowed, logprob in told if len(allowed) == 1} == {0.0}, "forced tokens"
    cool, _ = run(together(0.5))
    assert max(limited_gap(language, reply, choices, 0.5) for reply in cool) < 1e-3
    assert len({tuple(reply.ids) for reply in run(together(0.0))[0]}) == 1


def test_an_only_command_asks_nothing_and_a_longer_one_than_a_reply_is_refused(language, engine, run):
    only = choices_of(language, "go north")
    before = engine.read_tokens
    reply = run(engine.choose(KEY, 0, LONG, Sampling(max_tokens=12), only))
    assert (tuple(reply.ids), reply.finish, set(reply.logprobs)) == (only.replies[0], "stop", {0.0})
    assert engine.read_tokens == before
    with pytest.raises(EngineError, match=r"a choice of \d tokens, where a reply has at most 1"):
        run(engine.choose(KEY, 0, LONG, Sampling(max_tokens=1), only))


def test_episodes_of_many_turns_hold_nothing_but_commands(language, engine, run):
    async def play() -> list[Any]:
        async with open_seats("manyturn/Maze-v0", limit=8) as seats:
            plan = [(task, KEY._replace(task=task.id)) for task in seats.tasks("train")[:8]]
            agent = Agent(AgentConfig(only_admissible=True), language.template, engine, Sampling(max_tokens=12))
            return await gather(seats, agent, plan, max_turns=6, patience=Patience(attempts=1, error_share=1.0))

    episodes = run(play())
    assert not [episode.cause for episode in episodes if episode.ending.is_error]
    assert all(turn.valid for episode in episodes for turn in episode.turns)
    assert max(len(episode.turns) for episode in episodes) > 2


def test_a_run_that_is_limited_learns_from_what_vllm_drew_and_no_alarm_rings(vllm_package, tmp_path: Path):
    limited = {"agent": {"only_admissible": True}, "engine": {"name": "vllm", "kv_gib": 0.25}, "steps": 2}
    config = configure(overlay(TINY, {**limited, "sampling": {"max_tokens": 12}}))
    asyncio.run(train(config, tmp_path / "run"))
    steps = [line for line in read_metrics(tmp_path / "run") if line["phase"] == "train"]
    assert [line["step"] for line in steps] == [1, 2] and max(line["engine_gap"] for line in steps) < 1e-3
    assert all(line["invalid"] == 0 and "engine_alarm" not in line for line in steps)
