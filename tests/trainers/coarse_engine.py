"""An engine that draws with weights rounded to eight bits, as one does that serves a quantised copy."""

import copy
from typing import Literal

import torch

from manyturn.agents.engine.engine import Capabilities, Engine
from manyturn.agents.engine.engine_config import ENGINES, EngineConfig, EngineContext
from manyturn.agents.engine.engines.transformers import TransformersConfig
from manyturn.agents.engine.transformers_engine import TransformersEngine
from manyturn.agents.engine.weight_source import Weights


class CoarseConfig(EngineConfig):
    name: Literal["coarse"] = "coarse"

    @property
    def capabilities(self) -> Capabilities:
        return TransformersConfig().capabilities


class CoarseEngine(TransformersEngine):
    precision = "float8_e4m3fn"

    async def load(self, weights: Weights, version: int) -> None:
        await super().load(weights, version)
        self.rounded()

    def rounded(self) -> "CoarseEngine":
        with torch.no_grad():
            for mine in self._model.parameters():
                mine.copy_(mine.to(torch.float8_e4m3fn).to(mine.dtype))
        return self


@ENGINES.register(CoarseConfig)
def coarse(context: EngineContext, config: CoarseConfig) -> Engine:
    model = copy.deepcopy(context.model)
    return CoarseEngine(model, context.end_ids, barrier=context.barrier, copied=True).rounded()
