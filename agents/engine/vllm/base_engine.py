"""Base of the engines with vLLM: weights are handed over in a folder, and replies are labelled by them."""

from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from manyturn.agents.engine.engine import BaseEngine, EngineError, Reply, Sampling
from manyturn.agents.engine.engine_config import EngineConfig
from manyturn.agents.engine.vllm.model_folder import ModelFolder
from manyturn.agents.engine.vllm.reply_request import Drawer, DrawRequest
from manyturn.agents.engine.weight_source import ModuleWeights, Weights
from manyturn.agents.text.choice_decoding import Choices
from manyturn.agents.tokens.episode_key import EpisodeKey

if TYPE_CHECKING:
    from peft import PeftModel
    from transformers import PreTrainedModel


def rank_of(model: "PeftModel") -> int:
    """The rank of a model's adapters."""
    settings: Any = model.peft_config["default"]
    return settings.r


class CopyingEngine(BaseEngine):
    """Draws with a copy of the weights.

    Args:
        model: holds the weights to begin with; they are copied.
        end_ids: tokens that end a reply.
        precision: type that is computed in.
        folder: where the copy is kept; None: in a folder for temporary files.

    Attributes:
        drawn_tokens, read_tokens: tokens drawn or forced, and prompt tokens computed, since the engine was made.
    """

    def __init__(
        self,
        model: "PreTrainedModel",
        end_ids: frozenset[int],
        config: EngineConfig,
        precision: str,
        folder: Path | None = None,
    ):
        import torch
        from peft import PeftModel

        self.version, self.vocabulary = 0, model.config.get_text_config().vocab_size
        self.capabilities, self.precision = config.capabilities, precision
        self._ends = end_ids
        self._rank = rank_of(model) if isinstance(model, PeftModel) else 0
        self._folder = ModelFolder(model, getattr(torch, precision), folder)
        if self._rank:
            self._folder.write(ModuleWeights(model))
        self._awake = self._whole = True
        self._loads, self._run = 0, uuid4().hex[:8]
        self.drawn_tokens = self.read_tokens = 0

    def _label(self, loads: int) -> str:
        """A name for weights, which no other run has."""
        return f"{self._run}-{loads}"

    @abstractmethod
    async def _drawer(self, key: EpisodeKey) -> Drawer:
        """The drawer of an episode, which holds the weights of the folder."""

    @abstractmethod
    def _failed(self, drawer: Drawer, error: Exception) -> None:
        """A request to it brought no reply."""

    async def _reply(
        self, key: EpisodeKey, turn: int, prompt_ids: Sequence[int], sampling: Sampling, choices: Choices | None
    ) -> Reply:
        if not prompt_ids:
            raise EngineError("an empty prompt")
        if not self._awake:
            raise EngineError("the engine sleeps: wake it first")
        if not self._whole:
            raise EngineError("the weights are half new, since the last load failed: load again")
        if choices is not None and choices.forced is not None:
            self.drawn_tokens += len(choices.forced)
            return self._forced(choices.forced)
        drawer, version, loads = await self._drawer(key), self.version, self._loads
        seed = key.noise_seed(turn) >> 1  # 63 bits, which it takes for a number with a sign
        try:
            # The salt keeps what other weights computed out, should anything of it be left.
            salt, adapters = self._label(loads), self._folder.adapters
            drawn = await drawer.draw(DrawRequest(prompt_ids, sampling, seed, self._ends, salt, adapters, choices))
        except Exception as error:
            if loads == self._loads:  # otherwise it was broken off
                self._failed(drawer, error)
            if isinstance(error, EngineError):
                raise
            raise EngineError(f"vLLM raised {type(error).__name__}: {error}") from error
        if loads != self._loads:
            raise EngineError("the weights changed while the reply was drawn")
        self.drawn_tokens += len(drawn.ids)
        self.read_tokens += len(prompt_ids) - drawn.cached
        return Reply(drawn.ids, drawn.logprobs, "stop" if drawn.ids[-1] in self._ends else "length", version)

    async def load(self, weights: Weights, version: int) -> None:
        self._whole = False
        self._loads += 1
        old = self._folder.adapters
        try:
            await self._before_load()
            self._folder.write(weights)  # not awaited, so that the learner changes nothing during it
            await self._after_load(old)
        except BaseException as error:
            self._load_failed()
            if isinstance(error, Exception) and not isinstance(error, EngineError):
                raise EngineError(f"vLLM did not take the new weights: {type(error).__name__}: {error}") from error
            raise
        self.version, self._whole = version, True

    @abstractmethod
    async def _before_load(self) -> None:
        """Break off what is being drawn."""

    @abstractmethod
    async def _after_load(self, old: Path | None) -> None:
        """Hand over what the folder holds; ``old`` are the adapters before."""

    @abstractmethod
    def _load_failed(self) -> None:
        """Half of the weights may be there: nothing draws with them any more."""

    def _check(self, digests: Sequence[str]) -> None:
        """Raises EngineError unless these are the checksums of what the folder holds."""
        if not digests or set(digests) != {self._folder.digest}:
            raise EngineError(
                f"vLLM read other weights than were written to {self._folder.file}: is the disk full, or the folder "
                "another one there?"
            )
