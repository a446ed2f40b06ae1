"""The model of a policy as a run's configuration describes it, and the device that it is on."""

from collections.abc import Sequence

import torch

from manyturn.agents.model.language_model import LanguageModel
from manyturn.agents.model.model_config import MODELS, ModelContext
from manyturn.agents.model.model_internals import move
from manyturn.envs.contract.options.options import ConfigError
from manyturn.trainers.learn.learner.adapters import add_adapters
from manyturn.trainers.recipe.config import RunConfig


def choose_device(name: str) -> torch.device:
    """The device of a configuration's entry; auto takes a GPU if there is one."""
    if name == "cuda" and not torch.cuda.is_available():
        built = torch.version.cuda or torch.version.hip
        why = f"torch is built for CUDA {built}, but no GPU is visible" if built else "this torch is built for CPUs"
        fix = "look at nvidia-smi" if built else "install torch for CUDA"
        raise ConfigError(f"device = 'cuda', but {why}: {fix}, or set device = 'cpu'")
    return torch.device("cuda" if name != "cpu" and torch.cuda.is_available() else "cpu")


def policy_model(config: RunConfig, device: torch.device, texts: Sequence[str]) -> LanguageModel:
    """The model before it has learnt anything, with adapters if the run trains these; the same each time.

    Args:
        texts: what a model without words of its own takes them from.
    """
    lora, is_coarse = bool(config.learner.lora_rank), config.learner.weights == "bfloat16"
    context = ModelContext(device, not (lora or is_coarse), texts, config.seed, config.agent.max_context)
    language: LanguageModel = MODELS.apply(config.model, context)
    if lora:
        add_adapters(language, config.learner, config.seed)
    elif is_coarse:
        move(language.model, torch.bfloat16)
    return language
