"""Engine ``transformers``: draws in this process, many episodes in a batch; see ``engine/transformers_engine.py``."""

import copy
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field

from manyturn.agents.engine.engine import Capabilities, Engine
from manyturn.agents.engine.engine_config import ENGINES, EngineConfig, EngineContext
from manyturn.envs.contract.tasks.env_facts import EnvFacts


class TransformersConfig(EngineConfig):
    """Inference in this process; each episode's keys and values are kept from turn to turn."""

    moved: ClassVar[Mapping[str, str]] = {"patience": "engine.reproducible = false"}
    name: Literal["transformers"] = "transformers"
    max_batch: int = Field(default=256, ge=1)
    """Replies that are computed together, at most; fewer from the moment that memory runs out."""
    reproducible: bool = True
    """Compute in rounds that wait until every open episode has asked, so that the same run gives the same weights to
    the bit on a CPU. False lets requests join and leave a running batch: nothing waits for slow environments or long
    replies. Unset: false on a GPU, which keeps no bits, and in asynchronous order."""
    cache_gb: float | None = Field(default=None, gt=0)
    """Gigabytes for the keys and values that are kept; a request waits while they are full. Unset: enough for max_batch
    episodes of agent.max_context, or what the device can spare, whichever is less."""
    merge_adapters: bool = False
    """Draw with a copy of the model in which adapters are added to the weights below them: half as many operations, and
    one more copy in memory. Unset: true on a GPU with learner.lora_rank."""

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(
            keeps_bits=self.reproducible,
            entropy=True,
            lora=True,
            choices=True,
            own_weights=True,
            scores=True,
            commands=True,
        )

    def defaults(self, run: Any, env: EnvFacts | None) -> Mapping[str, Any]:
        on_gpu = run.device == "cuda"
        rounds = {"reproducible": False} if on_gpu or run.order.is_asynchronous else {}
        return {"engine": rounds | ({"merge_adapters": True} if on_gpu and run.learner.lora_rank else {})}

    def refuse(self, run: Any, env: EnvFacts | None) -> str | None:
        if self.merge_adapters and not run.learner.lora_rank:
            return "engine.merge_adapters has no effect without adapters: set learner.lora_rank, or leave it out"
        if run.order.is_asynchronous and self.reproducible:
            return (
                "engine.reproducible = true computes in rounds that wait for the slowest of all open episodes, those "
                "of later steps too: leave it out where order.kind = 'asynchronous', or leave that out"
            )
        return None


@ENGINES.register(TransformersConfig)
def transformers(context: EngineContext, config: TransformersConfig) -> Engine:
    """The engine; it draws with the given model itself, or with a copy: on a GPU in bfloat16 where weights are float32,
    and wherever the learner changes the model while it draws."""
    import torch

    from manyturn.agents.engine.decoding.memory import cache_bytes
    from manyturn.agents.engine.merged_adapters import MergedAdapters
    from manyturn.agents.engine.transformers_engine import TransformersEngine
    from manyturn.agents.model.model_internals import move

    model = context.model
    merges = config.merge_adapters and hasattr(model, "peft_config")
    coarser = model.device.type == "cuda" and model.dtype is torch.float32 and not context.lora
    dtype = torch.bfloat16 if coarser else model.dtype
    room = cache_bytes(context, config.cache_gb, config.max_batch, dtype, copies=merges)
    merged = None
    if merges:
        merged = MergedAdapters(model)
        model = merged.model
    elif coarser or context.own_weights:
        # What never changes, as below adapters, is there once.
        shared = {id(tensor): tensor for tensor in model.parameters() if context.lora and not tensor.requires_grad}
        model = copy.deepcopy(model, shared)
    if coarser:
        move(model, torch.bfloat16)
    moves = coarser or merges or (context.own_weights and not context.lora)
    return TransformersEngine(
        model,
        context.end_ids,
        config.max_batch,
        reproducible=config.reproducible,
        barrier=context.barrier,
        copied=moves,
        cache_bytes=room,
        merged=merged,
    )
