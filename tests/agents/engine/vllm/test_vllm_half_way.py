"""A transfer that ends when half of the weights have arrived: an error until the next one, and never a mixture."""

import asyncio
import os
import signal
from collections.abc import Iterator

import pytest
from half_way import EXTENSION, ORDER, reached
from tiny_for_vllm import ask, changed, gap

from manyturn.agents.engine.engine import EngineError
from manyturn.agents.engine.engine_config import EngineContext, build_engine
from manyturn.agents.engine.vllm.engine import VllmEngine
from manyturn.agents.engine.vllm.options import VllmConfig
from manyturn.agents.engine.weight_source import ModuleWeights

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800), pytest.mark.usefixtures("vllm_package")]


@pytest.fixture(scope="module")
def engine(language, run) -> Iterator[VllmEngine]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("manyturn.agents.engine.vllm.process.EXTENSION", EXTENSION)
        context = EngineContext(language.model, language.template.end_ids)
        made = build_engine(VllmConfig(kv_gib=0.25, max_batch=16), context)
        assert isinstance(made, VllmEngine)
        yield made
        run(made.shutdown())


@pytest.mark.parametrize("order", ["fail", "stand still"])
def test_weights_of_which_half_arrived_are_never_drawn_with(language, engine, run, order):
    async def broken_off() -> None:
        before = await ask(engine)
        assert gap(language, before) < 1e-3
        (engine._folder.path / ORDER).write_text(order)
        loading = asyncio.create_task(engine.load(changed(language, 11), 11))
        worker = await reached(engine._folder.path)
        if order == "stand still":
            assert not loading.done(), "the transfer waits for its receiver"
            os.kill(worker, signal.SIGKILL)
        with pytest.raises(EngineError):
            await loading
        with pytest.raises(EngineError, match="load again"):
            await ask(engine)
        assert engine.version == before.version
        await engine.load(ModuleWeights(language.model), 12)
        reply = await ask(engine)
        assert reply.version == 12 and gap(language, reply) < 1e-3

    run(broken_off())
