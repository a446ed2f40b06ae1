"""Draws in this process with a transformers model, many episodes in a batch; see ``agents/transformers_engine.py``."""

import copy
from typing import Literal

from pydantic import Field

from manyturn.agents.engine import Capabilities, Engine
from manyturn.agents.engine_config import ENGINES, EngineConfig, EngineContext


class TransformersConfig(EngineConfig):
    """Inference in this process; each episode's keys and values are kept from turn to turn."""

    name: Literal["transformers"] = "transformers"
    max_batch: int = Field(default=256, ge=1)
    """Replies that are computed together, at most."""
    patience: float | None = Field(default=None, gt=0)
    """Seconds that a batch waits for slow episodes; unset waits for all, which is reproducible to the bit."""

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(keeps_bits=self.patience is None, entropy=True, lora=True)


@ENGINES.register(TransformersConfig)
def transformers(context: EngineContext, config: TransformersConfig) -> Engine:
    """The engine; it draws with the given model itself, or on a GPU with a bfloat16 copy of float32 weights."""
    import torch

    from manyturn.agents.transformers_engine import TransformersEngine

    model = context.model
    copied = model.device.type == "cuda" and model.dtype is torch.float32 and not context.lora
    if copied:
        model = copy.deepcopy(model)
        torch.nn.Module.to(model, torch.bfloat16)
    return TransformersEngine(
        model, context.end_ids, config.max_batch, config.patience, barrier=context.barrier, copied=copied
    )
