"""Memory that inference takes, computed before it begins, and the errors that mean there was too little."""

import torch
from transformers import PreTrainedConfig

from manyturn.agents.engine.card.device_memory import (
    LEARNING_BYTES,
    MOMENTS_BYTES,
    cache_room,
    main_memory,
    size,
    training_bytes,
)
from manyturn.agents.engine.decoding.page_pool import PAGE, CacheShape
from manyturn.agents.engine.engine_config import EngineContext
from manyturn.envs.contract.options.options import ConfigError

_USUAL_CONTEXT = 2048  # tokens
_DRAWN_BYTES = 2  # of a weight that is trained: the copy that an engine of this process draws with on a GPU
_MASTER_BYTES = 4  # of a weight that is trained in bfloat16
_SAYS = ("out of memory", "can't allocate memory", "cannot allocate memory", "not enough memory", "alloc_failed")


def cache_shape(config: PreTrainedConfig, dtype: torch.dtype) -> CacheShape:
    """The cache shape of one position of a model."""
    text = config.get_text_config()
    heads = getattr(text, "num_key_value_heads", None) or text.num_attention_heads
    size = getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads
    return CacheShape(text.num_hidden_layers, heads, size, dtype)


def pages_for(shape: CacheShape, cache_bytes: float | None, max_batch: int) -> int:
    """Pages that fit, at least one.

    Args:
        cache_bytes: None: enough for ``max_batch`` episodes of 2048 tokens.
    """
    if cache_bytes is None:
        return max_batch * _USUAL_CONTEXT // PAGE
    return max(1, int(cache_bytes) // (PAGE * shape.position_bytes))


def cache_bytes(
    context: EngineContext, asked_gb: float | None, max_batch: int, dtype: torch.dtype, *, copies: bool = False
) -> float:
    """Bytes for keys and values: what was asked for, or enough for ``max_batch`` of the longest episodes, if there is.

    Args:
        copies: the engine draws with one more copy of a model with adapters.

    Raises:
        ConfigError: training and they do not fit, or not even one such episode does.
    """
    device, on_gpu = context.model.device, context.model.device.type != "cpu"
    total, training = device_bytes(device), _beside(context, on_gpu=on_gpu)
    if copies:
        training += sum(p.nbytes for name, p in context.model.named_parameters() if ".lora_" not in name)
    if training > total and context.learns:
        fix = "set learner.lora_rank to 16, or take a smaller model"
        if context.rank_share is not None:
            fix += ", or train with more processes on other devices"
        elif training - context.beside < total:
            fix = f"lower learner.states_gb = {context.beside / 1e9:g}"
        raise ConfigError(
            f"training takes {size(training)}, activations apart, and the device has {size(total)}: {fix}"
        )
    page = PAGE * cache_shape(context.model.config, dtype).position_bytes
    longest = -(-context.max_context // PAGE) * page
    if asked_gb is None:
        budget, instead = min(max_batch * longest, cache_room(total, training, on_gpu=on_gpu)), "take a smaller model"
        of = f"{size(budget)} of the {size(total)} of memory are"
    else:
        budget, instead = asked_gb * 1e9, f"set engine.cache_gb to {longest / 1e9:.3g}"
        of = f"engine.cache_gb = {asked_gb:g} is"
        if training + budget > total:
            raise ConfigError(
                f"engine.cache_gb = {asked_gb:g} and the {size(training)} that the model takes exceed the "
                f"{size(total)} of memory: set it to at most {(total - training) / 1e9:.3g}, or leave it out"
            )
    if budget < longest:
        fits = int(budget // page) * PAGE
        shorter = f"lower agent.max_context to {fits}" if fits >= PAGE else instead
        raise ConfigError(
            f"an episode of agent.max_context = {context.max_context} has {size(longest)} of keys and values, and {of} "
            f"for them: {shorter}" + (f", or {instead}" if shorter != instead and asked_gb is not None else "")
        )
    return budget


def device_bytes(device: torch.device) -> float:
    """All memory of a device; a container's limit counts."""
    return main_memory()[0] if device.type == "cpu" else float(torch.cuda.get_device_properties(device).total_memory)


def kept_bytes(context: EngineContext) -> float:
    """Bytes of a GPU that a learner keeps at most while an engine with weights of its own draws."""
    trained = sum(p.numel() for p in context.model.parameters() if context.learns and p.requires_grad)
    is_coarse = _is_coarse(context)
    copies = (2 if is_coarse else 4) * trained if context.reference else 0
    bodies = context.bodies * (LEARNING_BYTES + 4) * trained
    drawn = 0 if is_coarse and not context.own_weights else _DRAWN_BYTES * trained
    return _beside(context, on_gpu=True) - drawn + copies + bodies


def _is_coarse(context: EngineContext) -> bool:
    """True if weights of two bytes are trained, of which the learner has masters."""
    return context.learns and any(p.requires_grad and p.itemsize < 4 for p in context.model.parameters())


def _beside(context: EngineContext, *, on_gpu: bool) -> float:
    """Bytes of a device that the model takes, with its training or a rank's share of it, if it is trained."""
    trained = sum(p.numel() for p in context.model.parameters() if context.learns and p.requires_grad)
    others = sum(p.nbytes for p in context.model.parameters() if not (context.learns and p.requires_grad))
    training = training_bytes(trained, trained, on_gpu=on_gpu) + others + context.beside
    if _is_coarse(context):  # an engine of this process draws with the weights themselves
        each = 2 + LEARNING_BYTES + _MASTER_BYTES if context.moments else 2 + 2 + MOMENTS_BYTES
        training = (each + _DRAWN_BYTES * context.own_weights) * trained + others + context.beside
    if not context.moments:
        training -= MOMENTS_BYTES * trained
    if context.rank_share is None or not context.learns:
        return training
    shards = training_bytes(sum(p.numel() for p in context.model.parameters()), trained, on_gpu=False)  # of float32
    return training - LEARNING_BYTES * trained + context.rank_share * shards


def ran_out(error: BaseException) -> bool:
    """True if an error says that there was too little memory.

    PyTorch has a class for it only on a GPU; on a CPU, and in the libraries below, the text tells.
    """
    if isinstance(error, (MemoryError, torch.OutOfMemoryError)):
        return True
    return isinstance(error, RuntimeError) and any(says in str(error).lower() for says in _SAYS)
