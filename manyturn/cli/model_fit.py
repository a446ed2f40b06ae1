"""Model sizes whose training fits in a machine's memory."""

from manyturn.agents.engine.card.device_memory import MOMENTS_BYTES, cache_room, size, training_bytes
from manyturn.cli.doctor_finding import Diagnosis

MODELS = (  # parameters, and numbers in the keys and values of a token
    ("0.15M (a tiny model)", 150_000, 256),
    ("135M (SmolLM2)", 135_000_000, 11_520),
    ("1.5B (Qwen2.5)", 1_540_000_000, 14_336),
)
_EPISODE = 2048  # tokens
_ROOM = 0.7  # the share of memory that weights and optimiser may take, because activations come on top
_STATES = 1e9  # bytes; the default of learner.states_gb


def fits(name: str, parameters: int, memory: float, on_gpu: bool, per_token: int) -> Diagnosis:
    """Diagnosis of training a model in this much memory; weights, gradients and AdamW's two moments are float32.

    Args:
        memory: bytes.
        on_gpu: the engine draws with a bfloat16 copy there, and LoRA keeps the frozen weights in bfloat16.
        per_token: numbers in the keys and values of a token.
    """
    whole, adapters = (training_bytes(parameters, trained, on_gpu=on_gpu) for trained in (parameters, 0))
    what = f"training takes {size(whole)} ({whole / parameters:.0f} bytes a parameter) and activations"
    where = f"{size(memory)} of {'GPU memory' if on_gpu else 'memory'}"
    if whole <= _ROOM * memory:
        return Diagnosis(
            "ok", f"fits {name}", f"{what}: fits in {where}{_cache_episodes(memory, whole, on_gpu, per_token)}"
        )
    if adapters <= _ROOM * memory:
        fix = f"--learner.lora-rank 16 keeps {size(adapters)} of frozen weights instead"
        fix += _cache_episodes(memory, adapters, on_gpu, per_token)
        fix += f"; with learner.lora_layers, up to {size(_STATES)} more of hidden states (learner.states_gb)"
        if on_gpu and (there := whole - MOMENTS_BYTES * parameters) <= _ROOM * memory:
            fix += f"; or --learner.offload_optimizer true keeps {size(there)} there, the moments in main memory"
        return Diagnosis("note", f"fits {name}", f"{what}: too much for {where}; {fix}")
    return Diagnosis("note", f"fits {name}", f"{what}: too much for {where}, with LoRA too; take a larger machine")


def _cache_episodes(memory: float, training: float, on_gpu: bool, per_token: int) -> str:
    """Number of episodes that fit in the engine's memory next to training."""
    episode = _EPISODE * per_token * (2 if on_gpu else 4)
    count = int(cache_room(memory, training, on_gpu=on_gpu) // episode)
    return f", with keys and values of {count:,} episodes of {_EPISODE} tokens"
