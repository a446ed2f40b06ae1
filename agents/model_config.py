"""Which model acts and learns. Kept apart from the models, so that a configuration is checked without torch."""

from typing import Annotated, Literal

from pydantic import Field

from manyturn.envs.contract.options import Options


class ModelError(ValueError):
    """The model cannot be loaded or used; the text says what would help."""


class TinyModel(Options):
    """A decoder with random weights and a vocabulary made from the environment's own words, for a CPU."""

    kind: Literal["tiny"] = "tiny"
    width: int = Field(64, ge=8)
    """Hidden size D."""
    layers: int = Field(2, ge=1)
    """Decoder layers."""
    heads: int = Field(4, ge=1)
    """Attention heads; must divide the width."""
    sample_tasks: int = Field(64, ge=1)
    """Training tasks whose texts give the vocabulary."""
    numbers: Literal["words", "digits"] = "words"
    """Whether a number is one token, or one for each digit, so that a number never seen can be copied."""


class PretrainedModel(Options):
    """A Hugging Face causal model with its own chat template."""

    kind: Literal["pretrained"] = "pretrained"
    path: str
    """Model id, or a local folder."""
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    """Type of the weights; auto is float32 on a CPU and bfloat16 on a GPU."""
    gguf_file: str | None = None
    """Name of a GGUF file in the folder, converted once and cached (extra: gguf)."""


ModelConfig = Annotated[TinyModel | PretrainedModel, Field(discriminator="kind")]
