"""The engine of every run, on a machine whose memory suffices for so many rows, or tokens that are learnt from."""

from typing import Any, Literal

import torch

from manyturn.agents.engine.engine import Engine
from manyturn.agents.engine.engine_config import ENGINES, EngineContext
from manyturn.agents.engine.engines.transformers import TransformersConfig, transformers


class ScarceConfig(TransformersConfig):
    name: Literal["scarce"] = "scarce"  # type: ignore[assignment]
    rows: int = 4
    learnt_tokens: int = 10**9


@ENGINES.register(ScarceConfig)
def scarce(context: EngineContext, config: ScarceConfig) -> Engine:
    def take(module: torch.nn.Module, args: tuple[Any, ...], given: dict[str, Any]) -> None:
        drawing = given.get("past_key_values")  # None while the model learns
        learns_too_much = drawing is None and given["input_ids"].numel() > config.learnt_tokens
        if learns_too_much or (drawing is not None and len(drawing.rows) > config.rows):
            torch.empty(2**60)

    context.model.get_decoder().register_forward_pre_hook(take, with_kwargs=True)
    return transformers(context, config)
