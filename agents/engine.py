"""The contract between an agent and whatever computes the next tokens: ids in, ids and log-probabilities out."""

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol

from pydantic import Field

from manyturn.agents.episode_key import EpisodeKey
from manyturn.envs.contract.options import Options


class EngineError(RuntimeError):
    """The engine failed or answered nonsense. It is never a reward."""


class Sampling(Options):
    """How replies are drawn. There is no top-p or top-k: they would make the engine's log-probabilities differ from
    the learner's."""

    temperature: float = Field(default=1.0, ge=0)
    """Divides the logits; 0 takes the most likely token."""
    max_tokens: int = Field(default=16, ge=1)
    """Longest reply, its end token included."""


class Reply(NamedTuple):
    """What the engine drew.

    Attributes:
        ids: T token ids; the end token is among them if the reply ended by itself.
        logprobs: T natural log-probabilities at the sampling temperature (at temperature 0: of the logits as they are).
        finish: "stop" if the reply ended by itself, "length" if it was cut.
        version: policy version of the weights that drew it.
        entropies: T entropies, in nats, of the distributions that the tokens were drawn from, if the engine tells.
    """

    ids: list[int]
    logprobs: list[float]
    finish: Literal["stop", "length"]
    version: int
    entropies: list[float] | None = None


class Engine(Protocol):
    """Computes replies. Episodes open a session each, so that an engine knows how many may still ask."""

    @property
    def vocabulary(self) -> int:
        """Token ids are 0..vocabulary-1; a model may have more than its tokenizer, padded to a round size."""
        ...

    def open(self, key: EpisodeKey) -> None:
        """An episode begins."""

    async def generate(self, key: EpisodeKey, turn: int, prompt_ids: Sequence[int], sampling: Sampling) -> Reply:
        """Draw the reply to a prompt; raises EngineError."""
        ...

    def close(self, key: EpisodeKey) -> None:
        """The episode ended; what was kept for it can go."""
