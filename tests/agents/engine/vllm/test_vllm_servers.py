"""The engine vllm-server with two servers on this machine: one dies, is started again, is given weights of others."""

import asyncio
import copy
import os
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import torch
from peft import LoraConfig, get_peft_model
from tiny_for_vllm import KEY, LONG, ask, changed, choices_of, gap, limited_gap, tiny_for_vllm
from vllm_servers import TOKEN, Served

from manyturn.agents.engine.engine import EngineError, EngineRefused, Reply, Sampling
from manyturn.agents.engine.engine_config import EngineContext, build_engine
from manyturn.agents.engine.vllm.authentication import VARIABLE
from manyturn.agents.engine.vllm.options import VllmServerConfig
from manyturn.agents.engine.vllm.server.engine import VllmServerEngine
from manyturn.agents.engine.weight_source import ModuleWeights
from manyturn.agents.model.language_model import LanguageModel
from manyturn.agents.play.agent import Agent, AgentConfig
from manyturn.agents.play.concurrent_episodes import Patience, gather
from manyturn.agents.play.episode import Episode
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.envs.hosting.local.seats import open_seats
from manyturn.trainers.recipe.config import configure
from manyturn.trainers.record.run_folder import read_metrics
from manyturn.trainers.run.loop.loop import train

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600), pytest.mark.usefixtures("vllm_package")]
MAZE = "manyturn/Maze-v0"


@pytest.fixture(scope="module")
def folder(language, tmp_path_factory) -> Path:
    found = tmp_path_factory.mktemp("served") / "model"
    language.save(found)
    return found


@pytest.fixture(scope="module")
def servers(folder) -> Iterator[list[Served]]:
    """Two servers, the second of which takes adapters."""
    begun = [Served(folder), Served(folder, ("--lora-rank", "8"))]
    try:
        for server in begun:
            server.wait()
        yield begun
    finally:
        for server in begun:
            server.end()


@pytest.fixture(autouse=True)
def _token(monkeypatch):
    monkeypatch.setenv(VARIABLE, TOKEN)


@pytest.fixture
def engine(servers, language, run) -> Iterator[VllmServerEngine]:
    made = engine_of(language, *servers)
    yield made
    run(made.shutdown())


def engine_of(language: LanguageModel, *servers: Served, **more: Any) -> VllmServerEngine:
    config = VllmServerConfig(addresses=tuple(server.address for server in servers), **more)
    lora = hasattr(language.model, "peft_config")
    made = build_engine(config, EngineContext(language.model, language.template.end_ids, lora=lora))
    assert isinstance(made, VllmServerEngine)
    return made


async def play(language: LanguageModel, engine: VllmServerEngine, patience: Patience) -> list[Episode]:
    async with open_seats(MAZE, limit=4) as seats:
        plan = [(task, EpisodeKey(0, "test", task.id, 0)) for task in seats.tasks("train")[:4]]
        agent = Agent(AgentConfig(), language.template, engine, Sampling(max_tokens=6))
        return await gather(seats, agent, plan, max_turns=4, patience=patience)


def test_episodes_stay_with_their_server_and_are_drawn_with_the_learners_weights(language, engine, run, engine_gap):
    once = Patience(attempts=1, error_share=1.0)
    for version in (0, 3):
        if version:
            run(engine.load(changed(language, version), version))
        episodes = run(play(language, engine, once))
        assert not [episode.cause for episode in episodes if episode.ending.is_error]
        assert {span.version for episode in episodes for span in episode.ledger.spans} == {version}
        assert engine_gap(language.model, episodes, 1.0) < 1e-3

    async def turns() -> None:
        keys = [KEY._replace(member=member) for member in range(4)]
        for key in keys:
            engine.open(key)
        assert Counter(server.address for server in engine._place.values()) == {s.address: 2 for s in engine._servers}
        before = engine.read_tokens
        for _ in range(3):
            await asyncio.gather(*(ask(engine, key) for key in keys))
        # Each server read the prompt once or, as both began it together, twice; and then its last tokens alone.
        blocks = len(LONG) // 128 * 128
        assert engine.read_tokens - before <= 4 * len(LONG) + 8 * (len(LONG) - blocks)
        for key in keys:
            engine.close(key)

    run(turns())


def test_a_reply_is_limited_to_commands_at_a_server_too(language, engine, run):
    choices = choices_of(language, "go north", "go south", "go", "look", "take red key")

    async def together() -> list[Reply]:
        keys, sampling = [KEY._replace(member=member) for member in range(12)], Sampling(max_tokens=12)
        return list(await asyncio.gather(*(engine.choose(key, 0, LONG, sampling, choices) for key in keys)))

    replies = run(together())
    assert max(limited_gap(language, reply, choices) for reply in replies) < 1e-3
    assert len({tuple(reply.ids) for reply in replies}) > 2


def test_a_server_that_dies_loses_no_episode_and_stops_the_run_with_what_to_do(servers, language, engine, run):
    run(engine.wake())
    asked = asyncio.Event()

    async def dies() -> list[Episode]:
        drawn = engine._servers[1].draw

        async def draw(*words: Any) -> Any:
            asked.set()
            return await drawn(*words)

        engine._servers[1].draw = draw  # type: ignore[method-assign]  (it only tells when to kill it)
        playing = asyncio.create_task(play(language, engine, Patience(attempts=4, error_share=0.0)))
        await asked.wait()
        servers[1].kill()
        return await playing

    episodes = run(dies())
    assert not [episode.cause for episode in episodes if episode.ending.is_error]
    assert max(episode.attempts for episode in episodes) > 1, "none was with the server that died"
    with pytest.raises(EngineError, match=rf"{servers[1].address} does not answer .*manyturn\.agents\.vllm\.serve"):
        run(engine.load(changed(language, 5), 5))
    with pytest.raises(EngineError, match="load again"):
        run(ask(engine))
    servers[1].start()
    servers[1].wait()
    run(engine.load(ModuleWeights(language.model), 5))

    async def both() -> None:
        for member in range(2):
            engine.open(KEY._replace(member=member))
        replies = await asyncio.gather(*(ask(engine, KEY._replace(member=member)) for member in range(2)))
        assert {reply.version for reply in replies} == {5} and max(gap(language, reply) for reply in replies) < 1e-3

    run(both())


def test_a_reply_drawn_with_somebody_elses_weights_is_not_taken(servers, language, run):
    ours, theirs = (engine_of(language, servers[0]) for _ in range(2))
    assert gap(language, run(ask(ours))) < 1e-3
    old = copy.deepcopy(language.model.state_dict())
    run(theirs.load(changed(language, 6), 1))
    assert gap(language, run(ask(theirs))) < 1e-3
    language.model.load_state_dict(old)
    with pytest.raises(EngineError, match="draws with weights"):
        run(ask(ours))
    assert gap(language, run(ask(ours))) < 1e-3, "it was given ours again"
    for engine in (ours, theirs):
        run(engine.shutdown())


def test_a_transfer_whose_receiver_is_killed_leaves_an_error_until_the_next(servers, language, run):
    engine = engine_of(language, servers[0])
    run(ask(engine))

    async def killed() -> None:
        [worker] = servers[0].workers()
        os.kill(worker, signal.SIGSTOP)
        loading = asyncio.create_task(engine.load(changed(language, 7), 7))
        await asyncio.sleep(3)
        assert not loading.done(), "the transfer waits for its receiver"
        servers[0].kill()
        with pytest.raises(EngineError, match="does not answer"):
            await loading
        with pytest.raises(EngineError, match="load again"):
            await ask(engine)

    run(killed())
    servers[0].start()
    servers[0].wait()
    run(engine.load(ModuleWeights(language.model), 7))
    reply = run(ask(engine))
    assert reply.version == 7 and gap(language, reply) < 1e-3
    run(engine.shutdown())


def test_weights_of_another_model_are_refused_and_replace_nothing(servers, language, maze_texts, run):
    engine, other = engine_of(language, servers[0]), engine_of(tiny_for_vllm(maze_texts, layers=1), servers[0])
    before = run(ask(engine))
    with pytest.raises(EngineError, match="has to serve the learner's model"):
        run(ask(other))
    mine = {"Authorization": f"Bearer {TOKEN}"}
    state = httpx.get(servers[0].address + "/is_paused", headers=mine, timeout=60).json()
    assert state == {"is_paused": False}, "whoever else asks would wait"
    with pytest.raises(EngineError, match=r"draws with weights .*incomplete"):
        run(ask(engine))
    assert run(ask(engine)).ids == before.ids
    for made in (engine, other):
        run(made.shutdown())


def test_replies_are_equal_before_and_after_a_sleep_and_weights_may_arrive_in_it(servers, language, run):
    engine = engine_of(language, servers[0], sleeps=True)
    run(engine.wake())
    before = run(ask(engine))
    run(engine.sleep())
    with pytest.raises(EngineError, match="wake it first"):
        run(ask(engine))
    run(engine.wake())
    after = run(ask(engine))
    assert after.ids == before.ids and after.logprobs == pytest.approx(before.logprobs, abs=1e-5)
    run(engine.sleep())
    run(engine.load(changed(language, 8), 8))
    run(engine.wake())
    reply = run(ask(engine))
    assert reply.version == 8 and gap(language, reply) < 1e-3
    run(engine.shutdown())


def with_adapters(language: LanguageModel) -> LanguageModel:
    settings = LoraConfig(r=6, lora_alpha=12, target_modules="all-linear", bias="none")
    adapted = copy.copy(language)
    adapted.model = get_peft_model(copy.deepcopy(language.model), settings)  # type: ignore[assignment]
    return adapted


def test_adapters_are_the_learners_after_each_transfer(servers, language, run):
    adapted = with_adapters(language)
    engine = engine_of(adapted, servers[1])
    assert gap(adapted, run(ask(engine))) < 1e-3
    for version in (1, 2):
        with torch.no_grad():
            for name, parameter in adapted.model.named_parameters():
                if "lora_B" in name:
                    parameter.normal_(0, 0.2)
        run(engine.load(ModuleWeights(adapted.model), version))
        reply = run(ask(engine))
        assert reply.version == version and gap(adapted, reply) < 1e-3
        with adapted.model.disable_adapter():  # type: ignore[operator]
            assert gap(adapted, reply) > 0.05, "these adapters would not be missed"
    run(engine.shutdown())


def test_whoever_has_no_token_and_every_web_page_is_refused(servers, language, run, monkeypatch):
    order = {"method": "load_checked", "args": ["/etc/hostname"]}
    for headers in ({}, {"Authorization": "Bearer another-token-than-theirs"}, {"Origin": "http://example.org"}):
        known = {"Authorization": f"Bearer {TOKEN}"} if "Origin" in headers else {}
        for path in ("/collective_rpc", "/pause", "/v1/load_lora_adapter", "/inference/v1/generate"):
            answer = httpx.post(servers[0].address + path, json=order, headers={**known, **headers}, timeout=60)
            assert answer.status_code == 401
    monkeypatch.setenv(VARIABLE, "another-token-than-theirs")
    engine = engine_of(language, servers[0])
    with pytest.raises(EngineRefused, match=f"set {VARIABLE}"):
        run(ask(engine))
    run(engine.shutdown())


def test_a_run_learns_from_what_servers_draw(servers, folder, tmp_path):
    config = configure(
        {
            "env": {"id": MAZE, "args": {"max_turns": 4}},
            "model": {"name": "pretrained", "path": str(folder)},
            "engine": {"name": "vllm-server", "addresses": ",".join(server.address for server in servers)},
            "agent": {"format": "free_text"},
            "sampling": {"max_tokens": 6},
            "warmup": {"episodes": 0},
            "rollout": {"tasks": 2, "group": 2, "cut_share": 1.0},
            "learner": {"lora_rank": 0, "lr": 1e-3},
            "evaluation": {"limit": 1},
            "steps": 2,
            "device": "cpu",
        }
    )
    asyncio.run(train(config, tmp_path / "run"))
    steps = [line for line in read_metrics(tmp_path / "run") if line["phase"] == "train"]
    assert [line["step"] for line in steps] == [1, 2] and max(line["engine_gap"] for line in steps) < 1e-3
    assert TOKEN not in (tmp_path / "run" / "config.toml").read_text()
