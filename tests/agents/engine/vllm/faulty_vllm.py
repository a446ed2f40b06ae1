"""The engine vllm with one thing wrong that vLLM itself does not mind."""

from dataclasses import replace
from typing import Literal

from manyturn.agents.engine.engine import Engine, Sampling
from manyturn.agents.engine.engine_config import ENGINES, EngineContext
from manyturn.agents.engine.vllm.engine import VllmEngine
from manyturn.agents.engine.vllm.options import VllmConfig
from manyturn.agents.engine.vllm.reply_request import Drawer


class FaultyVllmConfig(VllmConfig):
    name: Literal["faulty_vllm"] = "faulty_vllm"  # type: ignore[assignment]
    fault: Literal["temperature", "stale_prefix", "no_adapters"]
    """What is wrong."""


class FaultyDrawer:
    """vLLM that is asked for something else."""

    def __init__(self, process: Drawer, fault: str):
        self.process, self.fault = process, fault

    async def draw(self, request):
        if self.fault == "temperature":
            request = replace(request, sampling=Sampling(max_tokens=request.sampling.max_tokens))
        if self.fault == "stale_prefix":
            request = replace(request, salt="always")
        if self.fault == "no_adapters":
            request = replace(request, adapters=None)
        return await self.process.draw(request)


class FaultyVllmEngine(VllmEngine):
    fault = ""

    async def _drawer(self, key):
        return FaultyDrawer(await super()._drawer(key), self.fault)

    async def _before_load(self):
        if self.fault != "stale_prefix":
            await super()._before_load()

    async def sleep(self):
        if self.fault != "stale_prefix":
            await super().sleep()  # forgets everything


@ENGINES.register(FaultyVllmConfig)
def faulty_vllm(context: EngineContext, config: FaultyVllmConfig) -> Engine:
    engine = FaultyVllmEngine(context.model, context.end_ids, config)
    engine.fault = config.fault
    return engine
