"""Weights on the named parts of the reward.

    r_k = sum over parts p of w_p r_k^p        w_p = 1 for a part that is not named

Implementation:
1. A part that no turn of a batch earned is 0 there; ``parts`` says how a misspelt name is found.
2. A weight of 0 takes a part out of the reward; NaN stays NaN, and the episode unscorable.

Differences: no paper's method. Left out: normalising each part before weighing, which changes with the batch and hides
a part that is always the same.

Watch: ``return`` is of the environment's rewards before weighing; ``advantage_std`` shows whether the parts that are
left differ at all.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal

from pydantic import Field

from manyturn.trainers.credit.batch.reward_parts import note_parts
from manyturn.trainers.credit.batch.turn_batch import TurnBatch
from manyturn.trainers.credit.stages import REWARDS, StageConfig


class PartWeightsConfig(StageConfig):
    order: ClassVar[int | None] = 12
    name: Literal["part_weights"] = "part_weights"
    weights: Mapping[str, float] = Field(min_length=1)
    """Part -> weight. 0 leaves the part out of the reward, unless it is NaN: an unscorable episode stays so."""

    def named_parts(self) -> set[str]:
        return set(self.weights)


@REWARDS.register(PartWeightsConfig, remembers=True)
def part_weights(
    batch: TurnBatch, config: PartWeightsConfig, memory: dict[str, Any] | None
) -> tuple[TurnBatch, dict[str, Any]]:
    """Multiply the named parts.

    >>> batch = TurnBatch.from_episodes({"outcome": [[0, 1]], "progress": [[1, 1]]}, groups=[0])
    >>> part_weights(batch, PartWeightsConfig(weights={"progress": 0.5}), None)[0].reward_K
    array([0.5, 1.5])
    """
    memory = note_parts("part_weights", config.weights, batch, memory)
    weights = {name: 1.0 for name in memory["seen"]} | dict(config.weights)
    if not any(weights.values()):
        raise ValueError("part_weights: every part has weight 0, so that nothing is left to learn from")
    return replace(batch, parts={name: weights[name] * part_K for name, part_K in batch.parts.items()}), memory
