"""Moments of a run at which vLLM starts next to a learner: what is free then, from the sizes of the model."""

from typing import NamedTuple

import torch
from peft import LoraConfig, get_peft_model

from manyturn.agents.engine.card.card_plan import CONTEXT, CardPlan
from manyturn.agents.engine.card.vllm_share import vllm_plan
from manyturn.agents.engine.engine_config import EngineContext
from manyturn.agents.engine.vllm.options import VllmConfig
from manyturn.agents.model.model_internals import without_peft_warning
from manyturn.agents.model.model_shapes import model_config, weightless

H100 = 79.19 * 2**30  # bytes, as CUDA counts them
SIZES = ("qwen2.5-1.5b", "qwen2.5-3b", "qwen2.5-7b")
MOMENTS = ("first start", "after the warm-up", "restart")


class Setting(NamedTuple):
    """A model that learns next to vLLM on one card.

    Attributes:
        first, later: bytes that the learner holds when vLLM starts: weights; gradients, moments and a reference too.
    """

    context: EngineContext
    first: float
    later: float

    def plan(self, **options: object) -> CardPlan:
        return vllm_plan(self.context, VllmConfig.model_validate(options), H100)

    def free(self, moment: str) -> int:
        """Bytes that vLLM's worker finds free: its own context and the learner's are there already."""
        return int(H100 - 2 * CONTEXT - (self.first if moment == "first start" else self.later))


def setting(name: str, rank: int) -> Setting:
    model = weightless(model_config(name), torch.bfloat16 if rank else torch.float32)
    if rank:
        with without_peft_warning(), torch.device("meta"):
            model = get_peft_model(model, LoraConfig(r=rank, target_modules="all-linear"))
        for part in model.parameters():
            part.data = part.data.float() if part.requires_grad else part.data
    trained = sum(p.numel() for p in model.parameters() if p.requires_grad)
    held = sum(p.nbytes for p in model.parameters())
    context = EngineContext(model, frozenset(), bool(rank), max_context=2560, reference=True)
    return Setting(context, held, held + trained * (4 + 8 + 4))
