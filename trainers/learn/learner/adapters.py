"""LoRA adapters on a frozen model: on all its linear layers but the head, or on those of a range of decoder layers."""

from typing import Any, cast

import torch
from peft import LoraConfig, get_peft_model
from transformers.pytorch_utils import Conv1D

from manyturn.agents.model.language_model import LanguageModel
from manyturn.agents.model.model_internals import layers_of, without_peft_warning
from manyturn.envs.contract.options.options import ConfigError
from manyturn.trainers.learn.learner.learner_config import LearnerConfig


def add_adapters(language: LanguageModel, learner: LearnerConfig, seed: int) -> None:
    """Freeze a model and put trainable adapters on it.

    Args:
        seed: decides their random weights.

    Raises:
        ConfigError: the range of layers is outside the model.
    """
    where: dict[str, Any] = (
        {"target_modules": "all-linear"} if learner.lora_layers is None else _within(language, learner.lora_layers)
    )
    settings = LoraConfig(r=learner.lora_rank, lora_alpha=learner.lora_alpha, bias="none", **where)
    with torch.random.fork_rng(), without_peft_warning():
        torch.manual_seed(seed)
        language.model = cast(Any, get_peft_model(language.model, settings))


def _within(language: LanguageModel, chosen: tuple[int, int]) -> dict[str, Any]:
    """The names that peft gives the linear layers inside a range of decoder layers."""
    first, end = chosen
    name, layers = layers_of(language.model.get_decoder())
    if end > len(layers):
        raise ConfigError(
            f"learner.lora_layers = [{first}, {end}] ends outside the model, which has {len(layers)} layers: give a "
            f"range within [0, {len(layers)}]"
        )
    inside = (path for layer in layers[first:end] for path, module in layer.named_modules() if _is_linear(module))
    names = sorted({path.rpartition(".")[2] for path in inside})
    return {"target_modules": names, "layers_to_transform": [*range(first, end)], "layers_pattern": name}


def _is_linear(module: torch.nn.Module) -> bool:
    return isinstance(module, torch.nn.Linear | Conv1D)
