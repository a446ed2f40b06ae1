"""The column "final_value" (K): what the critic says of the final observation of an episode that a limit cut off.

It is the value before the first token of a reply that nobody gave, and the same at each turn of the episode. What the
policy cannot read, because it is beyond ``agent.max_context``, the critic does not read either. NaN in episodes that
came to an end of their own; and, where an episode has several roles, for those whose turn it would not have been.
Asking costs a pass over the truncated episodes, without gradient.
"""

from typing import Literal

import numpy as np

from manyturn.trainers.learn.learner.column import COLUMNS, ColumnConfig, PlayedStep, Supplied


class FinalValueConfig(ColumnConfig):
    name: Literal["final_value"] = "final_value"


@COLUMNS.register(FinalValueConfig)
def final_value(step: PlayedStep, config: FinalValueConfig) -> Supplied:
    """Of each turn's episode, and the mean of those that there are."""
    from manyturn.trainers.learn.passes.samples import Sample  # torch, which a configuration is checked without

    numbers, samples = list[int](), list[Sample]()
    for number, (episode, truncated) in enumerate(zip(step.episodes, step.batch.truncated_E, strict=True)):
        prompt = None if episode.ledger is None else episode.ledger.unanswered
        if truncated and prompt is not None:
            seen = np.array(prompt.ids[: step.agent.config.max_context])
            ids, reply_mask = (
                np.append(seen, seen[-1]),
                np.arange(len(seen) + 1) == len(seen),
            )  # any token: it is not read
            samples.append(Sample(number, ids, reply_mask, np.zeros(len(ids)), np.where(reply_mask, 0, -1)))
            numbers.append(number)
    value_E = np.full(len(step.episodes), np.nan)
    if samples:
        value_E[numbers] = [float(row[-1]) for row in step.learner.read(samples).head_values("value")]
    mean = float(np.mean(value_E[numbers])) if numbers else float("nan")
    return Supplied({"final_value": value_E[step.batch.episode_K]}, figures={"final_value": mean})
