"""The engine vllm with the package itself: what it draws is the learner's, whatever happens to a transfer."""

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tiny_for_vllm import KEY, LONG, ask, changed, gap

from manyturn.agents.engine.engine import EngineError, Reply, Sampling
from manyturn.agents.engine.engine_config import EngineContext, build_engine
from manyturn.agents.engine.vllm.engine import VllmEngine
from manyturn.agents.engine.vllm.options import VllmConfig
from manyturn.agents.engine.weight_source import ModuleWeights
from manyturn.agents.model.language_model import LanguageModel
from manyturn.agents.play.agent import Agent, AgentConfig
from manyturn.agents.play.concurrent_episodes import Patience, gather
from manyturn.agents.play.episode import Episode
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.envs.hosting.local.seats import open_seats

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
MAZE = "manyturn/Maze-v0"
CONFIG = VllmConfig(kv_gib=0.25, max_batch=16)


@pytest.fixture(scope="module")
def engine(vllm_package, language, run) -> Iterator[VllmEngine]:
    made = engine_of(language)
    yield made
    run(made.shutdown())


def engine_of(language: LanguageModel) -> VllmEngine:
    context = EngineContext(language.model, language.template.end_ids)
    made = build_engine(CONFIG, context)
    assert isinstance(made, VllmEngine)
    return made


async def play(language: LanguageModel, engine: VllmEngine, temperature: float = 1.0) -> list[Episode]:
    async with open_seats(MAZE, limit=4) as seats:
        plan = [(task, EpisodeKey(0, "test", task.id, 0)) for task in seats.tasks("train")[:4]]
        agent = Agent(AgentConfig(), language.template, engine, Sampling(temperature=temperature, max_tokens=6))
        return await gather(seats, agent, plan, max_turns=4, patience=Patience(attempts=1, error_share=1.0))


def processes(title: str) -> list[int]:
    """Ids of the processes below this one whose title has the word."""
    parents = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(entry.parent.name)] = int(entry.read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            continue

    def is_below(pid: int) -> bool:
        return pid in parents and (parents[pid] == os.getpid() or is_below(parents[pid]))

    def is_titled(pid: int) -> bool:
        try:
            return title in Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
        except OSError:
            return False  # it has ended

    return [pid for pid in parents if is_below(pid) and is_titled(pid)]


def test_log_probabilities_are_the_learners_before_and_after_each_transfer(language, engine, run, engine_gap):
    assert engine.version == 0
    for version in (0, 3, 4):
        if version:
            run(engine.load(changed(language, version), version))
        for temperature in (1.0, 0.6):
            episodes = run(play(language, engine, temperature))
            assert not [episode.cause for episode in episodes if episode.ending.is_error]
            assert {span.version for episode in episodes for span in episode.ledger.spans} == {version}
            assert engine_gap(language.model, episodes, temperature) < 1e-3
    assert engine.drawn_tokens > 0


def test_more_prompts_than_a_pass_holds_do_not_kill_the_engine(language, engine, run):
    """The build for CPUs reads at most 2,048 tokens in a pass, and dies of a prompt that it has to cut there."""
    prompts = [[5 + (number + 7 * place) % 90 for place in range(300)] for number in range(14)]

    async def at_once() -> list[Reply]:
        asked = (ask(engine, EpisodeKey(0, "train/1", str(n), 0), prompt) for n, prompt in enumerate(prompts))
        return await asyncio.gather(*asked)

    replies = run(at_once())
    assert max(gap(language, reply, prompt) for reply, prompt in zip(replies, prompts, strict=True)) < 1e-3


def test_what_is_drawn_depends_on_the_key_and_on_nothing_else(engine, run):
    async def together() -> list[Reply]:
        keys = [KEY, KEY._replace(member=1), KEY._replace(stage="train/2")]
        return list(await asyncio.gather(*(ask(engine, key) for key in keys)))

    first, *others = run(together())
    assert run(ask(engine)).ids == first.ids
    assert len({tuple(reply.ids) for reply in (first, *others)}) == 3
    assert run(ask(engine, temperature=0.0)).ids == run(ask(engine, KEY._replace(member=1), temperature=0.0)).ids


def test_a_prompt_that_was_read_before_is_not_read_again_and_forgotten_with_its_weights(language, engine, run):
    prompt = LONG[::-1]
    for version in (5, 6):
        run(engine.load(changed(language, version), version))
        read = []
        for _ in range(2):
            before = engine.read_tokens
            reply = run(ask(engine, prompt=prompt))
            read.append(engine.read_tokens - before)
            assert gap(language, reply, prompt) < 1e-3
        assert read == [300, 300 - 256]


def test_replies_are_equal_before_and_after_a_sleep_and_weights_may_arrive_in_it(language, engine, run):
    before = run(ask(engine))
    run(engine.sleep())
    with pytest.raises(EngineError, match="wake it first"):
        run(ask(engine))
    run(engine.wake())
    after = run(ask(engine))
    assert after.ids == before.ids and after.logprobs == pytest.approx(before.logprobs, abs=1e-5)
    run(engine.sleep())
    run(engine.load(changed(language, 7), 7))
    run(engine.wake())
    reply = run(ask(engine))
    assert reply.version == 7 and gap(language, reply) < 1e-3


def test_a_reply_that_is_being_drawn_when_weights_change_is_broken_off(language, engine, run):
    async def overtaken() -> None:
        asked = [asyncio.create_task(ask(engine, KEY._replace(member=member), max_tokens=600)) for member in range(12)]
        await asyncio.sleep(0.05)
        await engine.load(changed(language, 8), 8)
        assert all(isinstance(end, EngineError) for end in await asyncio.gather(*asked, return_exceptions=True))

    run(overtaken())
    assert gap(language, run(ask(engine))) < 1e-3


class BreaksOff(ModuleWeights):
    """A learner that dies in the middle of handing over."""

    def tensors(self):
        for number, named in enumerate(super().tensors()):
            if number == 4:
                raise ConnectionError("the learner is gone")
            yield named


def test_a_transfer_that_fails_on_the_learners_side_leaves_an_error_until_the_next(language, engine, run):
    with pytest.raises(EngineError, match="the learner is gone"):
        run(engine.load(BreaksOff(changed(language, 9).module), 9))
    with pytest.raises(EngineError, match="load again"):
        run(ask(engine))
    run(engine.load(ModuleWeights(language.model), 9))
    reply = run(ask(engine))
    assert reply.version == 9 and gap(language, reply) < 1e-3


def test_a_transfer_whose_receiver_is_killed_leaves_an_error_until_the_next(language, engine, run):
    async def killed() -> None:
        await engine.wake()
        [worker] = processes("VLLM::Worker")
        os.kill(worker, signal.SIGSTOP)
        loading = asyncio.create_task(engine.load(changed(language, 10), 10))
        await asyncio.sleep(2)
        assert not loading.done(), "the transfer waits for its receiver"
        os.kill(worker, signal.SIGKILL)
        with pytest.raises(EngineError):
            await loading
        with pytest.raises(EngineError, match="load again"):
            await ask(engine)

    run(killed())
    run(engine.load(ModuleWeights(language.model), 10))
    reply = run(ask(engine))
    assert reply.version == 10 and gap(language, reply) < 1e-3


def test_nothing_is_left_of_it(vllm_package, language, run):
    made = engine_of(language)
    folder = made._folder.path
    run(made.wake())
    assert folder.is_dir()
    before = processes("VLLM::")
    run(made.shutdown())
    assert not folder.exists() and len(processes("VLLM::")) < len(before)
