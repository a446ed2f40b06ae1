"""Share of a card that vLLM takes with a model, from the model's own sizes."""

from typing import TYPE_CHECKING

from manyturn.agents.engine.card.card_plan import CardModel, CardPlan, plan_card
from manyturn.agents.engine.engine_config import EngineContext

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

    from manyturn.agents.engine.vllm.options import VllmConfig

PASS_TOKENS = 8192  # tokens of a pass of vLLM, at most
_WIDTHS, _INNER = 8, 3  # numbers of the hidden size and of the size between that a layer holds for a token
_LOGITS = 4  # tensors of float32 over the vocabulary, while tokens are drawn


def card_model(model: "PreTrainedModel", dtype: "torch.dtype", max_batch: int, adapter_bytes: float = 0.0) -> CardModel:
    """The sizes of a model in vLLM; an output head that is tied to the embeddings is there a second time.

    Args:
        max_batch: replies that are computed together.
        adapter_bytes: of vLLM's room for adapters.
    """
    from manyturn.agents.engine.decoding.memory import cache_shape

    text = model.config.get_text_config()
    numbers = sum(p.numel() for name, p in model.named_parameters() if ".lora_" not in name)
    if getattr(text, "tie_word_embeddings", False):
        numbers += text.vocab_size * text.hidden_size
    between = getattr(text, "intermediate_size", None) or 4 * text.hidden_size
    passing = PASS_TOKENS * (_WIDTHS * text.hidden_size + _INNER * between) * dtype.itemsize
    passing += _LOGITS * 4 * max_batch * text.vocab_size
    token = cache_shape(model.config, dtype).position_bytes
    return CardModel(numbers * dtype.itemsize + adapter_bytes, token, passing)


def vllm_plan(context: EngineContext, config: "VllmConfig", total: float) -> CardPlan:
    """The plan of a card that vLLM shares with the learner of a context.

    Args:
        total: bytes of the card.

    Raises:
        ConfigError: they do not fit.
    """
    import torch

    from manyturn.agents.engine.decoding.memory import kept_bytes

    dtype = getattr(torch, config.precision(on_gpu=True))
    adapters = sum(p.numel() for name, p in context.model.named_parameters() if ".lora_" in name)
    model = card_model(context.model, dtype, config.max_batch, adapters * dtype.itemsize)
    cache = None if config.kv_gib is None else config.kv_gib * 2**30
    return plan_card(total, kept_bytes(context), model, context.max_context, config.max_batch, cache)
