"""Named parts of the reward: adding one, and telling a rare part from a misspelt name.

A batch holds the parts that its turns earned, and those that the environment lists in ``part_names``. A part that is
named in a recipe and not there is 0, for it may be rare. It is an error if its name looks like that of a part which
was seen, or if none of the first batches had it.
"""

import difflib
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from manyturn.envs.contract.env.turn import OUTCOME
from manyturn.envs.contract.options.options import unknown
from manyturn.trainers.credit.batch.turn_batch import FloatK, TurnBatch

PATIENCE = 50  # batches


def part_K(batch: TurnBatch, name: str) -> FloatK:
    """A part (K); zeros if no turn of the batch earned it.

    >>> part_K(TurnBatch.from_episodes({"turn": [[-1, -1]]}, groups=[0]), "outcome")
    array([0., 0.])
    """
    return batch.parts[name] if name in batch.parts else np.zeros(len(batch.turn_K))


def outcome_E(batch: TurnBatch) -> FloatK:
    """The sum of each episode's part "outcome" (E); NaN where the episode is unscorable.

    >>> outcome_E(TurnBatch.from_episodes({"outcome": [[0, 1], [0]], "polish": [[0.5, 0], [9]]}, groups=[0, 0]))
    array([1., 0.])
    """
    sum_E = np.bincount(batch.episode_K, part_K(batch, OUTCOME), len(batch.truncated_E))
    return np.where(np.isnan(batch.episode_return_E()), np.nan, sum_E)


def with_part(batch: TurnBatch, stage: str, name: str, value_K: FloatK) -> TurnBatch:
    """The batch with one more part; raises ValueError if the name is taken.

    >>> batch = TurnBatch.from_episodes([[0, 1]], groups=[0])
    >>> with_part(batch, "overlong", "overlong", np.array([0.0, -0.5])).reward_K
    array([0. , 0.5])
    """
    if name in batch.parts:
        raise ValueError(
            f"{stage}: there is a reward part {name!r} already, which would be lost: leave one of them out"
        )
    return replace(batch, parts={**batch.parts, name: value_K})


def note_parts(
    stage: str, named: Collection[str], batch: TurnBatch, memory: Mapping[str, Any] | None
) -> dict[str, Any]:
    """The memory of the parts seen so far, after a check of the names that a recipe gives.

    Args:
        stage: who asks, for messages.
        named: the names in the recipe.
        memory: what this function returned last time; None at first.

    Raises:
        ValueError: a name is misspelt, or was in none of the first 50 batches.

    >>> note_parts("gated", ["digit"], TurnBatch.from_episodes([[0, 1]], groups=[0]), None)
    {'batches': 1, 'seen': ['outcome']}
    """
    memory = memory or {"batches": 0, "seen": [OUTCOME]}
    seen = {*memory["seen"], *batch.parts}
    batches = min(memory["batches"] + 1, PATIENCE)
    missing = sorted(set(named) - seen)
    misspelt = [name for name in missing if difflib.get_close_matches(name, seen - set(named), n=1, cutoff=0.75)]
    wrong = misspelt or (missing if batches == PATIENCE else [])
    if wrong:
        raise ValueError(
            f"{stage}: {unknown('reward part', wrong[0], seen)}; a part that is rare belongs into the environment's "
            "part_names"
        )
    return {"batches": batches, "seen": sorted(seen)}
