"""Weights that arrive in part, a sampler that missed them, and what a sampler would build for whoever asks."""

import asyncio
import base64
import contextlib
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import Any

import pytest
import torch

if any(find_spec(name) is None for name in ("uvicorn", "wsproto", "websockets")):
    pytest.skip("no samplers: pip install 'manyturn[hosts]'", allow_module_level=True)

from elsewhere import Wire, sampler_processes, sampling
from event_loop_pauses import without_pauses

from manyturn.agents.engine.engine import EngineError, EngineLost, Reply
from manyturn.agents.engine.engine import Sampling as Drawing
from manyturn.agents.engine.engine_config import EngineContext
from manyturn.agents.engine.engines.transformers import TransformersConfig
from manyturn.agents.engine.remote_samplers.engine_description import description
from manyturn.agents.engine.remote_samplers.messages import LANGUAGE, PATH, draw_to_wire, error_from_wire
from manyturn.agents.engine.remote_samplers.remote_engine import RemoteEngine, Samplers
from manyturn.agents.engine.remote_samplers.weight_channel import Packed
from manyturn.agents.engine.weight_source import ModuleWeights
from manyturn.agents.model.language_model import LanguageModel, build_tiny
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.envs.hosting.handle.messages import encode
from manyturn.envs.hosting.remote.connection import HostLink, HostLost, HostRefused

pytestmark = pytest.mark.versions

WORDS = ["north", "south", "you see a wall"]
SAMPLING = Drawing(max_tokens=6)
PROMPT = [5, 6, 7, 8]


def model(seed: int, width: int = 32) -> LanguageModel:
    return build_tiny(WORDS, seed, 256, torch.device("cpu"), width=width)


def context(language: LanguageModel) -> EngineContext:
    return EngineContext(language.model, language.template.end_ids, max_context=256)


def key(number: int = 0) -> EpisodeKey:
    return EpisodeKey(0, "test", "task", number)


def hello(**changes: Any) -> bytes:
    told = description(context(model(0)), TransformersConfig(reproducible=False), 1)
    return encode({"driver": "d", "language": LANGUAGE, **told, **changes})


@asynccontextmanager
async def linked(url: str, said: bytes | None = None) -> AsyncIterator[HostLink]:
    link = HostLink(url, None, said or hello(), 30.0, PATH, error_from_wire)
    await link.connect()
    try:
        yield link
    finally:
        await link.close()


@asynccontextmanager
async def drawing(language: LanguageModel, urls: list[str], **options: Any) -> AsyncIterator[RemoteEngine]:
    """An engine at samplers that asks at once, without rounds."""
    engine = RemoteEngine(context(language), TransformersConfig(reproducible=False), Samplers(urls, **options))
    try:
        await engine.ready()
        await engine.wake()
        yield engine
    finally:
        await engine.shutdown()


async def draw(engine: RemoteEngine, number: int = 0) -> Reply:
    engine.open(key(number))
    try:
        return await engine.generate(key(number), 0, PROMPT, SAMPLING)
    finally:
        engine.close(key(number))


def is_of(language: LanguageModel, reply: Reply) -> bool:
    """Whether all tokens of a reply have the log-probabilities that these weights give them."""
    ids = torch.tensor([PROMPT + reply.ids])
    with torch.inference_mode():
        logits = language.model(input_ids=ids, use_cache=False).logits[0, len(PROMPT) - 1 : -1]
    told = torch.log_softmax(logits, -1).gather(1, torch.tensor(reply.ids)[:, None])[:, 0]
    return bool(torch.allclose(told, torch.tensor(reply.logprobs), atol=1e-4))


_FIELDS = draw_to_wire(key(), 0, PROMPT, SAMPLING, None)


async def _torn(link: HostLink, packed: Packed, how: str) -> None:
    """A transfer that does not come right."""
    asked: Any = {"load": 7, "version": 9, "size": packed.size, "digest": packed.digest}
    data = bytearray(packed._data)
    if how == "other bytes":
        data[-5] ^= 1
    if how == "too large":
        asked["size"] = 2**40
    await link.ask("weights", **asked)
    half = data[: len(data) // 2]
    if how == "a gap":
        await link.ask("part", load=7, at=len(half), data=base64.b64encode(data[len(half) :]).decode())
    sent = half if how in ("half", "another transfer") else data
    await link.ask("part", load=7, at=0, data=base64.b64encode(sent).decode())
    await link.ask("commit", load=8 if how == "another transfer" else 7)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("half", r"weights of version 9 are torn: \d+ of \d+ bytes came right"),
        ("other bytes", "are torn"),
        ("a gap", "a part of the weights is missing"),
        ("too large", "weights of 1099511627776 bytes are of another model"),
        ("another transfer", "no such transfer of weights is under way"),
        ("another model", "the new weights are of another model"),
    ],
)
def test_weights_that_do_not_come_right_leave_the_old_ones(how, said):
    first, second = model(0), model(1, 64 if how == "another model" else 32)

    async def ask() -> list[Any]:
        async with sampling() as [url], linked(url) as link:
            with pytest.raises(EngineError, match="there are no weights yet"):
                await link.ask("draw", **_FIELDS)
            await Packed(ModuleWeights(first.model), 3).send(link.ask, 1)
            before = await link.ask("draw", **_FIELDS)
            with pytest.raises(EngineError, match=said):
                await _torn(link, Packed(ModuleWeights(second.model), 9), how)
            after = await link.ask("draw", **_FIELDS)
            assert link.fault is None
            return [before, after]

    before, after = asyncio.run(ask())
    assert before["ids"] == after["ids"] and before["version"] == after["version"] == 3
    assert is_of(first, Reply(**before)) and is_of(first, Reply(**after))


@pytest.mark.deep
def test_a_connection_that_is_cut_at_any_byte_of_a_transfer_never_mixes_two_versions():
    versions = [model(seed) for seed in range(6)]

    async def ask() -> list[Reply]:
        replies = []
        async with sampling() as [url], Wire(url) as wire, drawing(versions[0], [wire.url], wait=20.0) as engine:
            replies.append(await draw(engine))
            size = Packed(ModuleWeights(versions[0].model), 0).size
            for version, share in zip(itertools.count(1), (0.01, 0.3, 0.6, 0.99, 1.3)):
                at = wire.passed + share * size
                wire.watch = lambda at=at: wire.cut() if wire.passed >= at else None
                coming = asyncio.create_task(engine.load(ModuleWeights(versions[version].model), version))
                await asyncio.wait((coming,), timeout=2.0)
                wire.watch = lambda: None
                await coming
                replies.append(await draw(engine, version))
        return replies

    replies = asyncio.run(ask())
    assert [reply.version for reply in replies] == list(range(6))
    assert all(is_of(versions[reply.version], reply) for reply in replies)


@pytest.mark.deep
def test_a_sampler_that_was_started_again_draws_nothing_until_it_has_the_newest_weights():
    first, second = model(0), model(1)

    async def ask(one: Any, another: Any) -> list[Reply]:
        async with drawing(first, [one.url, another.url], wait=60.0) as engine:
            replies = [await draw(engine, number) for number in range(4)]
            one.kill()
            await engine.load(ModuleWeights(second.model), 5)
            replies += [await draw(engine, number) for number in range(4, 8)]
            lost = engine.figures()["lost_samplers"]
            again = type(one)("--device", "cpu", port=one.port)
            try:
                assert again.url == one.url
                while engine.figures()["lost_samplers"]:
                    await asyncio.sleep(0.05)
                another.kill()
                replies += [await draw(engine, number) for number in range(8, 12)]
            finally:
                again.end()
        assert lost == 1
        return replies

    with sampler_processes(2) as [one, another]:
        replies = asyncio.run(ask(one, another))
    assert [reply.version for reply in replies] == [0] * 4 + [5] * 8
    assert all(is_of(first if reply.version == 0 else second, reply) for reply in replies)


def test_when_no_sampler_is_left_the_run_ends_and_says_where_they_were():
    async def ask() -> None:
        async with sampling() as [url], Wire(url) as wire, drawing(model(0), [wire.url], wait=1.0) as engine:
            wire.hold()
            wire.cut()
            await draw(engine)

    with pytest.raises(EngineLost, match=r"no sampler could draw within 1 s \(http://127.0.0.1:\d+: .*--resume RUN"):
        asyncio.run(ask())


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"language": 0}, "speaks another language: install the same version of manyturn on both"),
        ({"engine": {"name": "none"}}, "cannot draw for this run: .*unknown engine 'none'"),
        ({"engine": {"name": "vllm-server", "addresses": ["http://127.0.0.1:1"]}}, "a sampler cannot be engine"),
        ({"attention": "somebody/kernels"}, "a sampler does not compute with 'somebody/kernels'"),
        ({"dtype": "float8"}, "a sampler does not compute with"),
        ({"model": {"model_type": "llama", "auto_map": {"AutoConfig": "theirs.Config"}}}, "asks for auto_map"),
        ({"model": {"model_type": "theirs"}}, "cannot draw for this run"),
        ({"model": {"model_type": "llama", "num_hidden_layers": 3_000_000}}, "at most 10,000 are built"),
        ({"model": {"model_type": "qwen3", "layer_types": ["full_attention"] * 20_000}}, "at most 10,000 are built"),
        ({"model": {"model_type": "llama", "vocab_size": 4_000_000_000}}, "takes .* and main memory has .* free"),
    ],
)
def test_what_a_sampler_will_not_build_is_refused_with_the_reason(changes, said):
    async def ask() -> None:
        async with sampling() as [url]:
            with pytest.raises(HostRefused, match=said):
                async with linked(url, hello(**changes)):
                    pass

    asyncio.run(ask())


def test_a_driver_that_hangs_up_ends_the_building_of_its_model():
    """Else the sampler is busy with ten thousand layers for which nobody waits."""
    narrow = {"hidden_size": 8, "intermediate_size": 8, "num_attention_heads": 1, "vocab_size": 8}
    deep = {"model_type": "llama", "num_hidden_layers": 10_000, **narrow}

    async def ask() -> None:
        async with sampling() as [url], without_pauses():
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(1.0), linked(url, hello(model=deep)):
                    pass
            while True:
                with contextlib.suppress(HostLost):  # until the other has ended
                    async with linked(url, hello(driver="another")) as link:
                        assert await link.ask("about") == "float32"
                        return

    asyncio.run(asyncio.wait_for(ask(), 100))  # all of it takes several minutes


def test_one_run_at_a_time_draws_and_one_that_talks_nonsense_is_hung_up_on():
    async def ask() -> None:
        async with sampling() as [url]:
            async with linked(url) as link:
                with pytest.raises(HostLost, match="plays for another driver"):
                    async with linked(url, hello(driver="another")):
                        pass
                with pytest.raises(HostLost):
                    await link.ask("draw", key=[0, "a"], turn=0, prompt=[1], sampling={}, choices=None)
            async with linked(url, hello(driver="another")) as link:
                assert await link.ask("about") == "float32"

    asyncio.run(ask())
