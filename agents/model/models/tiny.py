"""A model that begins with nothing but the environment's own words; see ``build_tiny``."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from manyturn.agents.model.model_config import MODELS, ModelConfig, ModelContext, has_tools
from manyturn.envs.contract.tasks.env_facts import EnvFacts

if TYPE_CHECKING:
    from manyturn.agents.model.language_model import LanguageModel

_SHORTER = 4  # how many times fewer tokens a reply has in the environment's own words


class DecoderModel(ModelConfig):
    """Options of a decoder with random weights and a vocabulary made from the environment's own words.

    A word is a token with the space before it, so that a name is copied in one step, and its number in another.
    """

    width: int = Field(default=64, ge=8)
    """Hidden size D."""
    layers: int = Field(default=2, ge=1)
    """Decoder layers."""
    heads: int = Field(default=4, ge=1)
    """Attention heads; must divide the width."""
    sample_tasks: int = Field(default=64, ge=1)
    """Training tasks whose texts give the vocabulary, of each environment where there are several."""
    numbers: Literal["words", "digits"] = "words"
    """Encode a number as one token, or as one for each digit, so that a number never seen can be copied."""
    query_key_init: Literal["independent", "equal"] = "independent"
    """Begin with keys equal to queries, so that a word attends to earlier ones of the same name, or independent."""

    @property
    def label(self) -> str:
        return f"{self.name}, {self.width} wide, {self.layers} layers"

    @property
    def vocabulary_tasks(self) -> int:
        return self.sample_tasks

    def defaults(self, run: Any, env: EnvFacts | None) -> Mapping[str, Any]:
        """It knows only one environment, so it needs no instructions, and a word is one token."""
        tokens = run.agent.reply_format.reply_tokens(tools=has_tools(env))
        return {"agent": {"instructions": False}, "sampling": {"max_tokens": tokens // _SHORTER}}


class TinyModel(DecoderModel):
    """A decoder with random weights and a vocabulary made from the environment's own words, for a CPU."""

    name: Literal["tiny"] = "tiny"


class SizedModel(DecoderModel):
    """A decoder of a fixed size, whose words are those of many tasks and whose numbers are copied digit by digit."""

    sample_tasks: int = Field(default=400, ge=1)
    """Training tasks whose texts give the vocabulary."""
    numbers: Literal["words", "digits"] = "digits"
    """Encode a number as one token, or as one for each digit, so that a number never seen can be copied."""
    query_key_init: Literal["independent", "equal"] = "equal"
    """Begin with keys equal to queries, so that a word attends to earlier ones of the same name, or independent."""


class Tiny100kModel(SizedModel):
    """A decoder of 0.1 million parameters besides its words, for levels of a few words."""

    name: Literal["tiny-100k"] = "tiny-100k"


class Tiny1mModel(SizedModel):
    """A decoder of 1 million parameters besides its words, which learns to copy names."""

    name: Literal["tiny-1m"] = "tiny-1m"
    width: int = Field(default=128, ge=8)
    """Hidden size D."""
    layers: int = Field(default=4, ge=1)
    """Decoder layers."""


class Tiny5mModel(SizedModel):
    """A decoder of 5 million parameters besides its words, for long episodes with many things."""

    name: Literal["tiny-5m"] = "tiny-5m"
    width: int = Field(default=256, ge=8)
    """Hidden size D."""
    layers: int = Field(default=5, ge=1)
    """Decoder layers."""
    heads: int = Field(default=8, ge=1)
    """Attention heads; must divide the width."""


@MODELS.register(Tiny100kModel)
@MODELS.register(Tiny1mModel)
@MODELS.register(Tiny5mModel)
@MODELS.register(TinyModel)
def tiny(context: ModelContext, config: DecoderModel) -> "LanguageModel":
    """A new model."""
    from manyturn.agents.model.language_model import build_tiny

    return build_tiny(
        context.texts,
        context.seed,
        context.max_context,
        context.device,
        width=config.width,
        layers=config.layers,
        heads=config.heads,
        digits=config.numbers == "digits",
        equal_keys=config.query_key_init == "equal",
    )
