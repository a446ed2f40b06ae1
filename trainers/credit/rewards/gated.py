"""Gated reward accumulation (G-RA): what a turn earns counts only if the episode passes what matters more.

    r_k = sum over parts p of r_k^p [every gate above p is open]
    gate i is open:  R^i >= threshold_i  (or >, with equal = "closes")        R^i: the episode's sum of part i

Shapes: parts K -> parts K.
Source: Stabilizing Long-term Multi-turn Reinforcement Learning with Gated Rewards, arXiv 2508.10548; one gate is the
paper's rule, a chain its extension to more levels.

Implementation:
1. Gates come highest first. The part of a gate counts if all gates above it are open, hence the highest always; a part
   without a gate counts if all are open, one in ``ungated`` always.
2. A gate looks at the full episode, so that rewards of early turns wait for its end.
3. A closed gate makes a part 0; NaN stays NaN, and the episode unscorable.
4. A sum within 1e-9 of the threshold, or of that share of a threshold above 1, is exactly there: what SPA pays out turn
   by turn adds up to the outcome but for rounding.
5. Figure: open_gates, the share of scorable episodes at which every gate is open.

Differences: there is no public code, the paper's numbers are not known, and sources differ on equality (``equal``).
Choose the threshold between the outcome that earns nothing yet (an empty patch) and the next better one (a patch that
fails): too low a threshold lets the agent live on the parts alone, too high a one gives it nothing to begin with. Left
out: gates on a single turn's reward, which the environment itself can put.

Watch: ``open_gates`` at 0: the parts never count, lower the threshold or warm up longer; at 1 from the start the gate
does nothing. ``return`` rising without ``success``: something ungated pays.
"""

from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from manyturn.envs.contract.env.turn import OUTCOME
from manyturn.envs.contract.options.options import Options
from manyturn.trainers.credit.batch.episode_sums import episode_sum_K
from manyturn.trainers.credit.batch.reward_parts import note_parts, part_K
from manyturn.trainers.credit.batch.turn_batch import TurnBatch
from manyturn.trainers.credit.stages import REWARDS, Rewarded, StageConfig

ROUNDING = 1e-9  # share of a threshold below which a difference is none


class Gate(Options):
    part: str = OUTCOME
    """Part of the reward that decides, by its sum over the episode."""
    threshold: float
    """What the sum must reach."""


class GatedConfig(StageConfig):
    order: ClassVar[int | None] = 20
    name: Literal["gated"] = "gated"
    gates: tuple[Gate, ...] = Field(min_length=1)
    """Gates, the highest first, such as {part = "outcome", threshold = 0.5}."""
    equal: Literal["opens", "closes"] = "opens"
    """What a sum does that is exactly the threshold."""
    ungated: tuple[str, ...] = ()
    """Parts that always count, such as penalties."""

    @model_validator(mode="after")
    def _each_part_once(self) -> Self:
        named = [*(gate.part for gate in self.gates), *self.ungated]
        twice = sorted({name for name in named if named.count(name) > 1})
        if twice:
            raise ValueError(f"the part {twice[0]!r} is named twice: give it one gate, or leave it ungated")
        return self

    def named_parts(self) -> set[str]:
        return {*(gate.part for gate in self.gates), *self.ungated}


@REWARDS.register(GatedConfig, remembers=True)
def gated(batch: TurnBatch, config: GatedConfig, memory: dict[str, Any] | None) -> tuple[Rewarded, dict[str, Any]]:
    """Set parts after a closed gate to 0.

    >>> batch = TurnBatch.from_episodes({"outcome": [[0, 1], [0, 0]], "step": [[0.25, 0.5]] * 2}, groups=[0, 0])
    >>> rewarded, _ = gated(batch, GatedConfig(gates=({"threshold": 1},)), None)
    >>> rewarded.batch.reward_K, rewarded.diagnostics
    (array([0.25, 1.5 , 0.  , 0.  ]), {'open_gates': 0.5})
    """
    memory = note_parts("gated", config.named_parts(), batch, memory)
    open_K = np.ones(len(batch.turn_K), bool)
    counts_K = dict.fromkeys(config.ungated, open_K)
    for gate in config.gates:
        counts_K[gate.part] = open_K
        sum_K = episode_sum_K(batch, part_K(batch, gate.part))
        slack = ROUNDING * max(1.0, abs(gate.threshold))
        least = gate.threshold - slack if config.equal == "opens" else gate.threshold + slack
        open_K = open_K & (sum_K > least)
    # A product, not a choice: NaN stays NaN after a closed gate, and the episode unscorable.
    parts = {name: value_K * counts_K.get(name, open_K) for name, value_K in batch.parts.items()}
    once_K = batch.scorable_K & (batch.turn_K == 0)
    share = float(open_K[once_K].mean()) if once_K.any() else float("nan")
    return Rewarded(replace(batch, parts=parts), {"open_gates": share}), memory
