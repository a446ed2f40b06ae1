"""Models of published shapes with random weights, made on the spot: where only speed counts, weights do not matter.

Their words are an environment's own, one token each, in a vocabulary as large as the published model's. The model
``gpu-shape`` of a run's configuration is one of them, whose replies end at random.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from typing import Any, Literal

import numpy as np
import torch
from pydantic import Field
from transformers import AutoModelForCausalLM, LlamaConfig, PreTrainedConfig, PreTrainedModel, Qwen2Config

from manyturn.agents.model.language_model import LanguageModel, tiny_tokenizer
from manyturn.agents.model.model_config import MODELS, ModelConfig, ModelContext
from manyturn.agents.text.chat_template import ChatTemplate
from manyturn.envs.contract.random_keys import generator
from manyturn.trainers.learn.learner.adapters import add_adapters
from manyturn.trainers.learn.learner.learner_config import LearnerConfig

_NEVER = -1e4  # logit of ids that stand for no word


@dataclass(frozen=True)
class Shape:
    """Sizes of a decoder."""

    kind: Literal["qwen2", "llama"]
    width: int
    between: int
    layers: int
    heads: int
    key_heads: int
    vocabulary: int
    rope: float = 1e6

    def config(self, positions: int = 32768) -> PreTrainedConfig:
        """As the library knows it; outputs and embeddings share their weights, as in the published ones."""
        sizes: dict[str, Any] = {
            "hidden_size": self.width,
            "intermediate_size": self.between,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.heads,
            "num_key_value_heads": self.key_heads,
            "vocab_size": self.vocabulary,
            "max_position_embeddings": positions,
            "rope_parameters": {"rope_type": "default", "rope_theta": self.rope},
            "tie_word_embeddings": True,
            "bos_token_id": None,
            "eos_token_id": None,
            "pad_token_id": None,
        }
        return Qwen2Config(**sizes) if self.kind == "qwen2" else LlamaConfig(**sizes)


# From the config.json of Qwen/Qwen2.5-0.5B-Instruct, Qwen/Qwen2.5-1.5B-Instruct, HuggingFaceTB/SmolLM2-135M-Instruct.
SHAPES = {
    "qwen2.5-0.5b": Shape("qwen2", 896, 4864, 24, 14, 2, 151936),
    "qwen2.5-1.5b": Shape("qwen2", 1536, 8960, 28, 12, 2, 151936),
    "smollm2-135m": Shape("llama", 576, 1536, 30, 9, 3, 49152, 1e5),
    "toy": Shape("qwen2", 32, 64, 2, 4, 2, 1024),
    "toy-words": Shape("qwen2", 32, 64, 2, 4, 2, 16384),
}


def random_model(
    name: str, device: torch.device, dtype: torch.dtype = torch.float32, seed: int = 0, spread: float | None = None
) -> PreTrainedModel:
    """A model of a shape, made where it is used.

    Args:
        spread: standard deviation of the weights; None: the library's own, which makes all words about equally likely.
    """
    config = SHAPES[name].config()
    if spread is not None:
        config.initializer_range = spread
    cuda = [device.index or 0] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=cuda), torch.device(device):
        torch.manual_seed(seed)
        model = AutoModelForCausalLM.from_config(config, dtype=dtype)
    return model.eval()


@torch.no_grad()
def fill(model: torch.nn.Module, spread: float) -> None:
    """Give a model on the CPU weights that depend on their names only, not on the library that made it.

    Args:
        spread: standard deviation; weights of norms are 1.
    """
    for name, weights in model.named_parameters():
        if "norm" in name:
            weights.fill_(1.0)
            continue
        numbers = generator("gpu weights", name).standard_normal(tuple(weights.shape), dtype=np.float32)
        weights.copy_(torch.from_numpy(numbers) * spread)


def random_language(
    name: str, device: torch.device, texts: Sequence[str], reply: float, dtype: torch.dtype = torch.float32
) -> LanguageModel:
    """A model of a shape with the words of some texts, whose replies end at random.

    Args:
        reply: mean tokens of a reply, were there no limit.
    """
    model = random_model(name, device, dtype)
    tokenizer = tiny_tokenizer(texts)
    if len(tokenizer) > SHAPES[name].vocabulary:
        raise ValueError(f"{len(tokenizer)} words are more than the {SHAPES[name].vocabulary} of {name}")
    template = ChatTemplate(tokenizer)
    model.config.eos_token_id = template.end_id
    bias = torch.full((SHAPES[name].vocabulary,), _NEVER)
    bias[: len(tokenizer)] = 0.0
    bias[template.end_id] = log(max(len(tokenizer) / reply, 1.0))
    head = model.get_output_embeddings()
    head.bias = torch.nn.Parameter(bias.to(device, dtype))  # the random weights are so small that it decides
    return LanguageModel(model, tokenizer, template)


def with_adapters(model: PreTrainedModel, rank: int) -> PreTrainedModel:
    """The model with adapters on all its linear layers, as ``learner.lora_rank`` makes them."""
    language = LanguageModel(model, None, None)  # type: ignore[arg-type]  # no text
    add_adapters(language, LearnerConfig(lora_rank=rank), seed=0)
    return language.model


class GpuShape(ModelConfig):
    """Random weights in a published shape, for figures of speed."""

    name: Literal["gpu-shape"] = "gpu-shape"
    shape: str = "toy"
    """One of SHAPES."""
    reply: float = Field(default=100.0, gt=1)
    """Mean tokens of a reply, were there no limit."""

    @property
    def label(self) -> str:
        return f"{self.shape}, random weights"

    @property
    def vocabulary_tasks(self) -> int:
        return 16


def register() -> None:
    """Have a run's configuration know the model ``gpu-shape``, which is nobody's but this kit's."""
    if "gpu-shape" not in MODELS.names():
        MODELS.register(GpuShape)(gpu_shape)


def gpu_shape(context: ModelContext, config: GpuShape) -> LanguageModel:
    """The model; its weights are float32 where they are trained, and bfloat16 on a GPU where they are not."""
    dtype = torch.bfloat16 if context.device.type == "cuda" and not context.trainable else torch.float32
    return random_language(config.shape, context.device, context.texts, config.reply, dtype)
