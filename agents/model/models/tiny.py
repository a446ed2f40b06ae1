"""A model that begins with nothing but the environment's own words; see ``build_tiny``."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from manyturn.agents.model.model_config import MODELS, ModelConfig, ModelContext, has_tools
from manyturn.envs.contract.tasks.env_facts import EnvFacts

if TYPE_CHECKING:
    from manyturn.agents.model.language_model import LanguageModel

_SHORTER = 4  # how many times fewer tokens a reply has in the environment's own words


class TinyModel(ModelConfig):
    """A decoder with random weights and a vocabulary made from the environment's own words, for a CPU."""

    name: Literal["tiny"] = "tiny"
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

    @property
    def label(self) -> str:
        return f"tiny, {self.width} wide, {self.layers} layers"

    @property
    def vocabulary_tasks(self) -> int:
        return self.sample_tasks

    def defaults(self, run: Any, env: EnvFacts | None) -> Mapping[str, Any]:
        """It knows only one environment, so it needs no instructions, and a word is one token."""
        tokens = run.agent.reply_format.reply_tokens(tools=has_tools(env))
        return {"agent": {"instructions": False}, "sampling": {"max_tokens": tokens // _SHORTER}}


@MODELS.register(TinyModel)
def tiny(context: ModelContext, config: TinyModel) -> "LanguageModel":
    """A new model."""
    from manyturn.agents.model.language_model import build_tiny

    sizes = {"width": config.width, "layers": config.layers, "heads": config.heads}
    digits = config.numbers == "digits"
    return build_tiny(context.texts, context.seed, context.max_context, context.device, digits=digits, **sizes)
