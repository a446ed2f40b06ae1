"""Draws with vLLM next to the learner; see ``agents/engine/vllm/engine.py``."""

from manyturn.agents.engine.engine import Engine
from manyturn.agents.engine.engine_config import ENGINES, EngineContext
from manyturn.agents.engine.vllm.options import VllmConfig


@ENGINES.register(VllmConfig)
def vllm(context: EngineContext, config: VllmConfig) -> Engine:
    """The engine; vLLM itself starts when it is first needed."""
    from manyturn.agents.engine.card.vllm_share import vllm_plan
    from manyturn.agents.engine.decoding.memory import device_bytes
    from manyturn.agents.engine.vllm.engine import VllmEngine
    from manyturn.agents.engine.vllm.versions import installed

    installed()
    on_gpu = context.model.device.type == "cuda"
    plan = vllm_plan(context, config, device_bytes(context.model.device)) if on_gpu else None
    return VllmEngine(context.model, context.end_ids, config, plan)
