"""Shapes of published models by name, so that a run can be planned before weights are downloaded.

Source: ``config.json`` of each repository on the Hugging Face Hub.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from manyturn.agents.model.model_config import ModelError

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel


class ModelShape(NamedTuple):
    """Sizes of a decoder with gated layers between.

    Attributes:
        family: of transformers' configurations.
        layers, width, between, heads, key_heads, words: their numbers and sizes; words are the vocabulary.
        is_tied: whether the output head is the embeddings.
    """

    family: str
    layers: int
    width: int
    between: int
    heads: int
    key_heads: int
    words: int
    is_tied: bool


SHAPES = {
    "smollm2-135m": ModelShape("llama", 30, 576, 1536, 9, 3, 49_152, is_tied=True),
    "qwen2.5-0.5b": ModelShape("qwen2", 24, 896, 4864, 14, 2, 151_936, is_tied=True),
    "qwen2.5-1.5b": ModelShape("qwen2", 28, 1536, 8960, 12, 2, 151_936, is_tied=True),
    "qwen2.5-3b": ModelShape("qwen2", 36, 2048, 11_008, 16, 2, 151_936, is_tied=True),
    "qwen2.5-7b": ModelShape("qwen2", 28, 3584, 18_944, 28, 4, 152_064, is_tied=False),
    "qwen2.5-14b": ModelShape("qwen2", 48, 5120, 13_824, 40, 8, 152_064, is_tied=False),
}


def named_shape(name: str) -> str | None:
    """The name of a shape in the id of a model, of which the part behind the slash counts; None where there is none.

    >>> named_shape("qwen2.5-1.5b-instruct"), named_shape("mine")
    ('qwen2.5-1.5b', None)
    """
    last = name.rpartition("/")[2].lower()
    return next((shape_name for shape_name in SHAPES if last == shape_name or last.startswith(f"{shape_name}-")), None)


def model_config(name: str) -> "PreTrainedConfig":
    """The configuration of a model: of a folder, of a name in ``SHAPES``, or of an id in the hub's cache.

    Raises:
        ModelError: it is none of them.
    """
    from transformers import AutoConfig

    if Path(name).is_dir() or (shape_name := named_shape(name)) is None:
        try:
            return AutoConfig.from_pretrained(name, local_files_only=True)
        except (OSError, ValueError) as error:
            raise ModelError(
                f"{name} is no folder of a model, and not in the hub's cache: give a folder, or one of "
                f"{', '.join(SHAPES)}"
            ) from error
    shape = SHAPES[shape_name]
    return AutoConfig.for_model(
        shape.family,
        num_hidden_layers=shape.layers,
        hidden_size=shape.width,
        intermediate_size=shape.between,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.key_heads,
        vocab_size=shape.words,
        tie_word_embeddings=shape.is_tied,
        max_position_embeddings=32_768,
    )


def weightless(config: "PreTrainedConfig", dtype: Any = None) -> "PreTrainedModel":
    """A model whose tensors have a shape and a type, and no memory."""
    import torch
    from transformers import AutoModelForCausalLM

    with torch.device("meta"):
        return AutoModelForCausalLM.from_config(config, dtype=dtype or torch.float32)
