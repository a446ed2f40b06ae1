"""Policies on disk, loaded to play and not to learn: a model's folder, file or id, and the policies of a run."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from manyturn.agents.model.gguf_conversion import gguf_in
from manyturn.agents.model.language_model import LanguageModel, load_pretrained
from manyturn.agents.model.model_config import ModelError
from manyturn.agents.play.agent import AgentConfig
from manyturn.envs.contract.options.config_diff import shown
from manyturn.trainers.recipe.config import RunConfig
from manyturn.trainers.recipe.role_config import LONGEST_CONTEXT
from manyturn.trainers.record.checkpoint import beside, newest_checkpoint, read_state, verify
from manyturn.trainers.record.config_edits import edits_since
from manyturn.trainers.record.run_folder import read_config


@dataclass(frozen=True)
class SavedRun:
    """A run's folder at one of its checkpoints.

    Attributes:
        config: of the run, as its folder has it.
        state: plain values of the checkpoint.
    """

    path: Path
    checkpoint: Path
    config: RunConfig
    state: Mapping[str, Any]

    @property
    def label(self) -> str:
        """Name of the run with its step."""
        return f"{self.path.name} step {self.state['step']}"

    def language(self, policy: str, device: torch.device | None = None) -> LanguageModel:
        """Model of one of its policies; see ``loaded``."""
        return loaded(str(self.checkpoint / beside("model", policy)), device)


def saved_run(folder: Path) -> SavedRun | None:
    """The run in a folder, at its newest intact checkpoint, or at the one that the folder is; None for any other.

    Raises:
        ValueError: no checkpoint is intact.
        CheckpointError: this one is damaged.
    """
    if folder.name == "model" and (folder.parent / "manifest.json").is_file():
        folder = folder.parent
    is_checkpoint = (folder / "manifest.json").is_file() and (folder / "state.json").is_file()
    if not is_checkpoint and not (folder / "config.toml").is_file():
        return None
    run = folder.parent.parent if is_checkpoint else folder
    config = read_config(run)
    if is_checkpoint:
        checkpoint = folder
        verify(checkpoint)
    else:
        checkpoint, problems = newest_checkpoint(run / "checkpoints")
        if checkpoint is None:
            why = f"{problems[0]}: restore it" if problems else "train it first"
            raise ValueError(f"{run} has no intact checkpoint: {why}")
        for problem in problems:
            print(f"skipped a damaged checkpoint: {problem}", file=sys.stderr)
    if edits := edits_since(checkpoint, config):
        print(f"{run}/config.toml was edited since {checkpoint}, and counts: {shown(edits)}", file=sys.stderr)
    return SavedRun(run, checkpoint, config, read_state(checkpoint))


def loaded(path: str, device: torch.device | None = None) -> LanguageModel:
    """A model's folder, GGUF file or id, to play with.

    Args:
        device: where it is to be; None takes a GPU if there is one.
    """
    _quiet_libraries()
    if gguf_in(Path(path)) is not None:
        print(f"loading {path}, and converting the GGUF file the first time", file=sys.stderr)
    if device is None:
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return load_pretrained(path, device)


def with_context(config: AgentConfig, language: LanguageModel, word: str, *, given: bool) -> AgentConfig:
    """Options of a model's agent with a context that the model knows positions for.

    Args:
        word: names the model, for messages.
        given: whether ``max_context`` was asked for; else it is the longest that is usual.

    Raises:
        ModelError: more was asked for than it knows.
    """
    limit = positions_of(language)
    if not given:
        return config.model_copy(update={"max_context": min(limit, LONGEST_CONTEXT)})
    if config.max_context > limit:
        raise ModelError(
            f"agent.max_context = {config.max_context}, but {word} knows {limit} positions: give at most that"
        )
    return config


def positions_of(language: LanguageModel) -> int:
    """Longest context of a model, in tokens."""
    config = language.model.config.get_text_config()
    return getattr(config, "max_position_embeddings", None) or LONGEST_CONTEXT


def _quiet_libraries() -> None:
    from huggingface_hub.utils import logging as hub_logging
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    hub_logging.set_verbosity_error()  # the error says once what the hub could not do
