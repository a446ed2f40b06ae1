"""Clipping and Delta: a part of the reward that turns collect is bounded, so that more turns cannot collect more of it.

    clip:   r_k <- min(r_k - eta, 0)          only a turn that is worse than eta is told so
    delta:  r_k <- r_k - r_(k+1);  r_K stays  the turns of an episode sum to the first one's

Shapes: parts K -> the named part changed (K), all others as they are.
Source: On Designing Effective RL Reward at Training Time for LLM Reasoning, arXiv 2410.15115.

Implementation:
1. With both, a part is clipped first.
2. Delta says of a turn how much better it was than the next one: where a part is a judgement of turns, repeating what
   is judged well earns nothing.
3. A part of a turn that is NaN stays so, and its episode unscorable.

Differences: theirs is the score of a learnt model for each step of a solution, and the last step has the outcome alone;
here it is any named part, and the last turn keeps its own.

Watch: ``parts/NAME`` of the environment is as before; ``turns`` should no longer grow with it.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from pydantic import model_validator

from manyturn.trainers.credit.batch.backward_recursion import Timeline
from manyturn.trainers.credit.batch.reward_parts import note_parts, part_K
from manyturn.trainers.credit.batch.turn_batch import TurnBatch
from manyturn.trainers.credit.stages import REWARDS, StageConfig


class ClipDeltaConfig(StageConfig):
    order: ClassVar[int | None] = 13
    name: Literal["clip_delta"] = "clip_delta"
    part: str
    """Part that is bounded."""
    eta: float | None = None
    """What a turn has to reach not to be blamed; unset: nothing is clipped."""
    delta: bool = True
    """Take from each turn what the next one earned."""

    @model_validator(mode="after")
    def _acts(self) -> Self:
        if self.eta is None and not self.delta:
            raise ValueError("clip_delta changes nothing: set eta, or delta = true")
        return self

    def named_parts(self) -> set[str]:
        return {self.part}


@REWARDS.register(ClipDeltaConfig, remembers=True)
def clip_delta(
    batch: TurnBatch, config: ClipDeltaConfig, memory: Mapping[str, Any] | None
) -> tuple[TurnBatch, dict[str, Any]]:
    """Bound the part.

    >>> batch = TurnBatch.from_episodes({"outcome": [[0, 0, 1]], "judged": [[0.5, 1.0, 1.0]]}, groups=[0])
    >>> clip_delta(batch, ClipDeltaConfig(part="judged"), None)[0].parts["judged"]
    array([-0.5,  0. ,  1. ])
    >>> clip_delta(batch, ClipDeltaConfig(part="judged", eta=0.75, delta=False), None)[0].parts["judged"]
    array([-0.25,  0.  ,  0.  ])
    """
    memory = note_parts("clip_delta", [config.part], batch, memory)
    bounded_K = part_K(batch, config.part)
    if config.eta is not None:
        bounded_K = np.minimum(bounded_K - config.eta, 0.0)
    if config.delta:
        line = Timeline.of(batch.episode_K, batch.turn_K)
        bounded_K = bounded_K - line.following(bounded_K, np.zeros(len(bounded_K)))
    return replace(batch, parts={**batch.parts, config.part: bounded_K}), memory
