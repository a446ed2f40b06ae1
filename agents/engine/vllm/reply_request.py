"""A request for one reply of vLLM, and the reply. vLLM is not imported."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from manyturn.agents.engine.engine import Sampling
from manyturn.agents.text.choice_decoding import Choices

PROCESSOR = "manyturn.agents.engine.vllm.choice_processor:LimitedReplies"
REPLIES = "manyturn_replies"  # the name of the extra argument that holds the choices


@dataclass(frozen=True)
class DrawRequest:
    """A reply to be drawn.

    Attributes:
        ends: tokens that end a reply.
        salt: prompts with other salts share no cached prefix with it.
        adapters: folder of those to draw with.
        choices: the replies that are possible; None: any.
    """

    prompt: Sequence[int]
    sampling: Sampling
    seed: int
    ends: frozenset[int]
    salt: str
    adapters: Path | None
    choices: Choices | None = None

    @property
    def sampling_params(self) -> dict[str, Any]:
        """vLLM's sampling parameters, as far as they are the same in a process and over HTTP."""
        limited = {} if self.choices is None else {REPLIES: [list(ids) for ids in self.choices.replies]}
        return {
            "temperature": self.sampling.temperature,
            "max_tokens": self.sampling.max_tokens,
            "seed": self.seed,
            "logprobs": 0,
            "ignore_eos": True,  # the template says what ends a reply, and the model's own configuration may differ
            "stop_token_ids": sorted(self.ends),
            "detokenize": False,
            **({"extra_args": limited} if limited else {}),
        }


class Drawn(NamedTuple):
    """A reply of vLLM: T token ids, their log-probabilities, and the prompt's tokens that came from a cache."""

    ids: list[int]
    logprobs: list[float]
    cached: int


class Drawer(Protocol):
    """vLLM, in processes of its own or behind an address."""

    async def draw(self, request: DrawRequest) -> Drawn:
        """A reply to a prompt. Raises EngineError where there is none."""
        ...
