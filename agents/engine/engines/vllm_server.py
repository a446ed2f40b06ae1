"""Draws with servers of vLLM's; see ``agents/engine/vllm/server/engine.py``."""

from manyturn.agents.engine.engine import Engine
from manyturn.agents.engine.engine_config import ENGINES, EngineContext
from manyturn.agents.engine.vllm.authentication import check_reach, host_of
from manyturn.agents.engine.vllm.options import VllmServerConfig


@ENGINES.register(VllmServerConfig)
def vllm_server(context: EngineContext, config: VllmServerConfig) -> Engine:
    """The engine; servers are asked when they are first needed. The package vllm is at theirs, and need not be here."""
    from manyturn.agents.engine.vllm.server.engine import VllmServerEngine

    for address in config.addresses:
        check_reach(host_of(address), address)
    return VllmServerEngine(context.model, context.end_ids, config)
