"""Any causal model of Hugging Face's; see ``load_pretrained``."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from manyturn.agents.model_config import MODELS, ModelConfig, ModelContext
from manyturn.envs.contract.facts import EnvFacts

if TYPE_CHECKING:
    from manyturn.agents.language_model import LanguageModel


class PretrainedModel(ModelConfig):
    """A Hugging Face causal model with its own chat template."""

    name: Literal["pretrained"] = "pretrained"
    path: str
    """Model id, or a local folder."""
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    """Type of the weights; auto is float32 on a CPU and bfloat16 on a GPU."""
    gguf_file: str | None = None
    """Name of a GGUF file in the folder, converted once and cached (extra: gguf)."""

    @property
    def label(self) -> str:
        return self.path

    def located(self) -> Self:
        folder = Path(self.path)
        return self.model_copy(update={"path": str(folder.resolve())}) if folder.is_dir() else self

    def refuse(self, run: Any, env: EnvFacts | None) -> str | None:
        if self.dtype == "bfloat16" and not run.learner.lora_rank:
            return "model.dtype = 'bfloat16' loses small updates: leave it at auto, or set learner.lora_rank"
        return None


@MODELS.register(PretrainedModel)
def pretrained(context: ModelContext, config: PretrainedModel) -> "LanguageModel":
    """The model as it was published or saved."""
    from manyturn.agents.language_model import load_pretrained

    return load_pretrained(
        config.path, context.device, trainable=context.trainable, dtype=config.dtype, gguf_file=config.gguf_file
    )
