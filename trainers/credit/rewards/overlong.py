"""Soft punishment of length (DAPO): beyond a free length a reward falls linearly, down to a limit.

    r += -factor clip((length - (max_tokens - buffer)) / buffer, 0, 1)

Shapes: parts K -> one more part K, "overlong".
Source: DAPO, arXiv 2503.14476, equation 13; numbers agree with verl's ``DAPORewardManager``.

Implementation:
1. The length counts the reply tokens of an episode, whose last turn is charged, or of one reply (``over``).
2. Observations do not count: the policy did not write them.
3. It is a part of the reward like others: gates and weights after it can name it.

Differences: theirs is 20480 tokens with a buffer of 4096 for one answer. verl does not bound what is longer than
max_tokens, because nothing there can be. Left out: the paper's other way, leaving truncated episodes out of the loss.

Watch: ``reply_tokens`` times ``turns`` against max_tokens - buffer: far below it the stage does nothing, as with short
replies; if it stays above, factor is small next to the outcome.
"""

from typing import Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from manyturn.envs.contract.facts import EnvFacts
from manyturn.trainers.credit.episode_sums import episode_sum_K, last_K
from manyturn.trainers.credit.reward_parts import with_part
from manyturn.trainers.credit.stages import REWARDS, StageConfig
from manyturn.trainers.credit.turn_batch import TurnBatch


class OverlongConfig(StageConfig):
    adds: ClassVar[frozenset[str]] = frozenset({"overlong"})
    name: Literal["overlong"] = "overlong"
    max_tokens: int = Field(ge=1)
    """Length at which the full factor is taken."""
    buffer: int = Field(ge=1)
    """Tokens below max_tokens over which the punishment grows from 0."""
    factor: float = Field(default=1.0, gt=0)
    """Most that is taken."""
    over: Literal["episode", "reply"] = "episode"
    """What has the length."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.buffer > self.max_tokens:
            raise ValueError(f"buffer {self.buffer} is above max_tokens {self.max_tokens}")
        return self

    def refuse(self, run: Any, env: EnvFacts | None) -> str | None:
        free, longest = self.max_tokens - self.buffer, run.sampling.max_tokens
        if self.over == "episode" or free < longest:
            return None
        return (
            f"{self.name} has no effect: it begins after {free} tokens of a reply, and sampling.max_tokens = {longest} "
            "ends it before: lower its max_tokens"
        )


@REWARDS.register(OverlongConfig)
def overlong(batch: TurnBatch, config: OverlongConfig) -> TurnBatch:
    """Add the punishment.

    >>> batch = TurnBatch.from_episodes([[0, 1], [1]], groups=[0, 0], tokens=[[40, 50], [70]])
    >>> overlong(batch, OverlongConfig(max_tokens=100, buffer=20)).reward_K
    array([0. , 0.5, 1. ])
    """
    tokens_K = batch.tokens_K.astype(np.float64)
    if config.over == "episode":
        tokens_K = np.where(last_K(batch), episode_sum_K(batch, tokens_K), 0.0)
    excess_K = (tokens_K - (config.max_tokens - config.buffer)) / config.buffer
    return with_part(batch, "overlong", "overlong", -config.factor * np.clip(excess_K, 0.0, 1.0))
