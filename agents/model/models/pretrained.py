"""Any causal model of Hugging Face's; see ``load_pretrained``."""

import contextlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from manyturn.agents.model.gguf_conversion import gguf_in
from manyturn.agents.model.model_config import MODELS, ModelConfig, ModelContext, ModelError, has_tools
from manyturn.agents.text.formats.tagged import TaggedConfig
from manyturn.agents.text.formats.tool_call import ToolCallConfig
from manyturn.agents.text.reply_format import FORMATS
from manyturn.envs.contract.tasks.env_facts import EnvFacts

if TYPE_CHECKING:
    from manyturn.agents.model.language_model import LanguageModel

LONGEST_CONTEXT = 4096  # what an episode may cost in memory and time, unless more is asked for
_RANK = 16
# With adapters, and of all weights. The former are those of the recipe household-smollm2-lora, the latter that of
# household-gigpo-qwen2.5-1.5b; large steps of all weights cost a model what it knows.
_LR = {True: 1e-4, False: 1e-6}
_NO_EFFECT = "model.head_dtype = 'float32' has no effect: on a CPU all of the model is float32; leave it out"
_WARMUP_LR = {True: 2e-4, False: 1e-5}


class PretrainedModel(ModelConfig):
    """A Hugging Face causal model with its own chat template."""

    name: Literal["pretrained"] = "pretrained"
    path: str
    """Model id, a local folder, or a GGUF file."""
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    """Type of the weights; auto is float32 on a CPU and bfloat16 on a GPU."""
    head_dtype: Literal["auto", "float32"] = "auto"
    """Type that logits are computed in, by engine `transformers` and learner, from the same weights; auto is that of
    the rest of the model, which rounds them where it is bfloat16."""
    gguf_file: str | None = None
    """Name of a GGUF file in a folder with several; converted once and cached (extra: gguf)."""

    @classmethod
    def of_word(cls, word: str) -> dict[str, Any] | None:
        return {"path": word}

    @property
    def label(self) -> str:
        return self.path

    @property
    def preparation(self) -> str:
        is_gguf = self.gguf_file is not None or gguf_in(Path(self.path)) is not None
        return f"loading {self.path}{', and converting the GGUF file the first time' if is_gguf else ''}"

    def located(self) -> Self:
        place = Path(self.path)
        return self.model_copy(update={"path": str(place.resolve())}) if place.exists() else self

    def defaults(self, run: Any, env: EnvFacts | None) -> Mapping[str, Any]:
        """It reads what it has to do, answers in a form that it may have seen, and is changed gently."""
        agent, learner, tools = run.agent, run.learner, has_tools(env)
        form = TaggedConfig() if not tools else ToolCallConfig()
        form = agent.format if "format" in agent.model_fields_set else form
        rank = _RANK if run.engine.capabilities.lora else 0
        rank = learner.lora_rank if "lora_rank" in learner.model_fields_set else rank
        context = min(positions(self.path) or LONGEST_CONTEXT, LONGEST_CONTEXT)
        longest = agent.max_context if "max_context" in agent.model_fields_set else context
        imitates = env is None or env.has_expert or bool(run.warmup.model_fields_set)
        return {
            "threads": 0,
            "agent": {"format": form, "max_context": context},
            "sampling": {"max_tokens": max(1, min(FORMATS.apply(form).reply_tokens(tools=tools), longest // 4))},
            "learner": {"lora_rank": rank, "lr": _LR[rank > 0]},
            "warmup": {
                "episodes": 256 if imitates else 0,
                "noise": 0.1,
                "lr": _WARMUP_LR[rank > 0],
                "max_updates": 200,
                "check_every": 25,
                "check_episodes": 32,
            },
        }

    def refuse(self, run: Any, env: EnvFacts | None) -> str | None:
        if self.dtype == "bfloat16" and not (run.learner.lora_rank or run.learner.has_masters):
            return (
                "model.dtype = 'bfloat16' loses small updates: leave it at auto, or set learner.weights = 'bfloat16' "
                "or learner.lora_rank"
            )
        if self.dtype == "float32" and run.learner.weights == "bfloat16":
            return "model.dtype = 'float32' is not learner.weights = 'bfloat16': leave one of them out"
        if self.head_dtype == "float32" and self.dtype != "bfloat16" and run.device == "cpu":
            return _NO_EFFECT
        return None


def positions(path: str) -> int | None:
    """Longest sequence that a model knows, in tokens, by the configuration in its folder or in the hub's cache.

    None where that does not say, or is not there yet.
    """
    file: Any = Path(path) / "config.json"
    if not Path(path).exists():
        with contextlib.suppress(Exception):  # no id, or the package is not installed: loading the model says so
            from huggingface_hub import try_to_load_from_cache

            file = try_to_load_from_cache(path, "config.json")
    try:
        values = json.loads(Path(file).read_text(encoding="utf-8"))
        candidates = [part.get(key) for part in (values, values.get("text_config") or {}) for key in _POSITIONS]
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return None
    return next((count for count in candidates if isinstance(count, int) and count > 0), None)


_POSITIONS = ("max_position_embeddings", "n_positions")


@MODELS.register(PretrainedModel)
def pretrained(context: ModelContext, config: PretrainedModel) -> "LanguageModel":
    """The model as it was published or saved."""
    from manyturn.agents.model.language_model import load_pretrained

    language = load_pretrained(
        config.path, context.device, trainable=context.trainable, dtype=config.dtype, gguf_file=config.gguf_file
    )
    limit = getattr(language.model.config.get_text_config(), "max_position_embeddings", None)
    if limit and context.max_context > limit:
        raise ModelError(
            f"agent.max_context = {context.max_context}, but {config.path} knows {limit} positions: give at most that"
        )
    if config.head_dtype == "float32":
        from manyturn.agents.model.float32_head import put_float32_head

        if context.device.type == "cpu" and config.dtype != "bfloat16":
            raise ModelError(_NO_EFFECT)
        put_float32_head(language.model)
    return language
