"""Units of recipes that cannot act in a run: left out before it starts, each with a line.

A recipe is written for any environment and model. A penalty on broken formats has nothing to charge where every reply
is an action: in free text, or where the policy chooses among admissible commands. What the user sets is never left out:
where that does nothing, the run says so (``run/loop/metric_warnings.py``) or is refused.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from manyturn.trainers.credit.rewards.invalid_penalty import InvalidPenaltyConfig
from manyturn.trainers.recipe.config import RunConfig


def without_idle_units(config: RunConfig, changes: Mapping[str, Any]) -> tuple[RunConfig, list[str]]:
    """The configuration without the recipes' units that cannot act, and a line about each.

    Args:
        changes: the user's own entries, which stay.
    """
    credit = changes.get("credit")
    if isinstance(credit, Mapping) and "rewards" in credit:
        return config, []
    lines = dict(_idle_stages(config))
    if not lines:
        return config, []
    rewards = tuple(stage for stage in config.credit.rewards if stage.name not in lines)
    return config.model_copy(update={"credit": config.credit.model_copy(update={"rewards": rewards})}), [
        *lines.values()
    ]


def _idle_stages(config: RunConfig) -> Iterator[tuple[str, str]]:
    """Names of the reward stages that cannot act, with the reason and the fix."""
    agent = config.agent
    for stage in config.credit.rewards:
        if not isinstance(stage, InvalidPenaltyConfig) or stage.flag != "format_valid":
            continue
        if agent.only_admissible:
            yield stage.name, f"{stage.name} is left out: agent.only_admissible leaves no reply to charge"
        elif agent.format.name == "free_text":
            yield (
                stage.name,
                f"{stage.name} is left out: agent.format = free_text takes every reply for an action; to charge "
                "replies, ask for a format such as tagged, or give the stage flag = 'understood'",
            )
