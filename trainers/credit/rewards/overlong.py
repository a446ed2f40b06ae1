"""Soft punishment of length (DAPO): beyond a free length a reward falls linearly, down to a limit.

    r += -factor clip((length - (limit - buffer)) / buffer, 0, 1)
    limit = ``share`` of what the run allows, buffer = ``buffer_share`` of that; or ``max_tokens`` and ``buffer``

Shapes: parts K -> one more part K, "overlong".
Source: DAPO, arXiv 2503.14476, equation 13; numbers agree with verl's ``DAPORewardManager``.

Implementation:
1. The length counts the tokens of one reply, or of all replies of an episode, whose last turn is charged (``over``).
2. Observations do not count: the policy did not write them.
3. What a run allows a reply is ``sampling.max_tokens``; an episode, that times its most turns, and no more than the
   context holds. Observations share the context, so that an episode's limit can be more than it can have.
4. Numbers of tokens that the run never reaches are refused.
5. It is a part of the reward like others: gates and weights after it can name it.

Differences: theirs is 20480 tokens with a buffer of 4096 for one answer, which are all that their run allows and a
fifth of it: the defaults. verl does not bound what is longer than the limit, because nothing there can be. The paper's
other way, leaving truncated episodes out of the loss, is ``credit.truncated = "left_out"``.

Watch: ``overlong_share`` is the share of replies, or episodes, that are punished: at 0 the stage does nothing, take a
smaller share; if it stays high, factor is small next to the outcome. ``cut`` should fall.
"""

from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from manyturn.envs.contract.options.options import OnlyWith
from manyturn.envs.contract.tasks.env_facts import EnvFacts
from manyturn.trainers.credit.batch.episode_sums import episode_sum_K, last_K
from manyturn.trainers.credit.batch.reward_parts import with_part
from manyturn.trainers.credit.batch.token_limits import Extent, longest
from manyturn.trainers.credit.batch.turn_batch import TurnBatch
from manyturn.trainers.credit.stages import REWARDS, Rewarded, StageConfig

_BY_SHARE = OnlyWith("max_tokens", None)


class OverlongConfig(StageConfig):
    adds: ClassVar[frozenset[str]] = frozenset({"overlong"})
    order: ClassVar[int | None] = 11
    name: Literal["overlong"] = "overlong"
    max_tokens: int | None = Field(default=None, ge=1)
    """Length at which the full factor is taken; unset: a share of what the run allows."""
    buffer: int | None = Field(default=None, ge=1)
    """Tokens below max_tokens over which the punishment grows from 0; belongs to max_tokens."""
    share: Annotated[float, _BY_SHARE] = Field(default=1.0, gt=0, le=1)
    """That length, as a share of the most tokens that the run allows."""
    buffer_share: Annotated[float, _BY_SHARE] = Field(default=0.2, gt=0, le=1)
    """The buffer, as a share of that length."""
    factor: float = Field(default=1.0, gt=0)
    """Most that is taken."""
    over: Extent = "episode"
    """What has the length."""

    @property
    def needs(self) -> frozenset[str]:  # type: ignore[override]
        return frozenset({f"longest_{self.over}"} if self.max_tokens is None else ())

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if (self.max_tokens is None) != (self.buffer is None):
            raise ValueError("max_tokens and buffer belong together: give both, or neither for shares of the most")
        if self.max_tokens is not None and self.buffer is not None and self.buffer > self.max_tokens:
            raise ValueError(f"buffer {self.buffer} is above max_tokens {self.max_tokens}")
        return self

    def refuse(self, run: Any, env: EnvFacts | None) -> str | None:
        if self.max_tokens is None or self.buffer is None:
            return None
        free, most = self.max_tokens - self.buffer, longest(run, env)[self.over]
        if free < most:
            return None
        what = "a reply" if self.over == "reply" else "an episode's replies"
        return (
            f"{self.name} has no effect: it begins after {free} tokens of {what}, and the run allows {most} "
            f"({_limits(run, env, self.over)}): lower its max_tokens, or leave it and buffer out for shares of that"
        )


@REWARDS.register(OverlongConfig)
def overlong(batch: TurnBatch, config: OverlongConfig) -> Rewarded:
    """Add the punishment.

    >>> batch = TurnBatch.from_episodes([[0, 1], [1]], groups=[0, 0], tokens=[[40, 50], [70]])
    >>> overlong(batch, OverlongConfig(max_tokens=100, buffer=20)).batch.reward_K
    array([0. , 0.5, 1. ])
    """
    tokens_K, charged_K = batch.tokens_K.astype(np.float64), np.ones(len(batch.turn_K), bool)
    if config.over == "episode":
        charged_K = last_K(batch)
        tokens_K = np.where(charged_K, episode_sum_K(batch, tokens_K), 0.0)
    if config.max_tokens is None or config.buffer is None:
        limit = config.share * batch.column(f"longest_{config.over}")
        buffer = config.buffer_share * limit
    else:
        limit, buffer = float(config.max_tokens), float(config.buffer)
    excess_K = (tokens_K - (limit - buffer)) / buffer
    figures = {"overlong_share": float((excess_K > 0)[charged_K].mean())}
    return Rewarded(with_part(batch, "overlong", "overlong", -config.factor * np.clip(excess_K, 0.0, 1.0)), figures)


def _limits(run: Any, env: EnvFacts | None, over: Extent) -> str:
    """The options that a bound follows from."""
    reply = f"sampling.max_tokens = {run.sampling.max_tokens}"
    if over == "reply":
        return reply
    context = "" if run.agent.room is None else f", agent.max_context = {run.agent.room}"
    return f"{run.rollout.most_turns(env)} turns, {reply}{context}"
