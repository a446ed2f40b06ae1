"""Figures of a run that contradict each other for whoever reads one of them alone, or what the run was told to do."""

from collections.abc import Iterator, Mapping
from typing import Any

from manyturn.trainers.credit.rewards.invalid_penalty import InvalidPenaltyConfig
from manyturn.trainers.recipe.config import RunConfig

_ALL = 0.999
_MANY = 0.5  # share of cut replies from which they are worth a line
_SOME = 0.05  # share of actions that are not understood from which a penalty that charges none is worth a line
_EQUAL = 1.0001  # ratio of learner and engine up to which they differ by rounding


def oddities(line: Mapping[str, Any], config: RunConfig) -> Iterator[str]:
    """Warnings about a line of metrics; the same texts each time.

    Args:
        line: with ``success``, ``invalid``, ``not_understood``, ``penalised_turns``, ``cut``, and each policy's
            ``engine_ratio_max``, ``engine_alarm``, ``idle_wrappers`` and ``idle_advantage``, as far as known.
    """
    success, invalid, cut = (line.get(name) or 0.0 for name in ("success", "invalid", "cut"))
    if success and invalid >= _ALL:
        yield (
            "episodes succeed although every reply counts as invalid: their success does not show that the policy "
            f"keeps to the format {config.agent.format.name}, or respond() returns invalid() for what it carries out"
        )
    if line.get("penalised_turns") == 0 and (line.get("not_understood") or 0.0) >= _SOME and _spares_speech(config):
        yield (
            "invalid_penalty charges nothing: agent.format = free_text takes every reply for an action, and what the "
            "environment does not understand is free; leave the stage out, ask for a format such as tagged, or give it "
            "flag = 'understood'"
        )
    if cut >= _MANY:
        yield (
            f"half of the replies or more are cut at sampling.max_tokens = {config.sampling.max_tokens}: what they "
            "would have ended with is lost; a higher one leaves room"
        )
    for name, cause in line.items():
        if name.rpartition("/")[2] == "engine_alarm":
            whose = f" of {name.rpartition('/')[0]}" if "/" in name else ""
            yield f"the engine{whose} and its learner judge the same tokens differently: {cause}"
        if name.rpartition("/")[2] == "idle_wrappers":
            yield (
                f"env.wrappers {cause} paid in the first step, and no advantage would be another one without it: "
                f"{config.credit.advantage.name} takes off what all are paid alike; leave it out, or take one that is "
                "paid for good, such as progress_gain"
            )
        if name.rpartition("/")[2] == "idle_advantage":
            yield (
                f"credit.advantage = {cause} gave every turn of the first step what grpo gives: no turn was paid for "
                "itself, or no situation came back; docs/choosing-credit.md says what the method asks for"
            )
    yield from _nothing_to_correct(line, config)


def _spares_speech(config: RunConfig) -> bool:
    """True if broken formats are charged where no reply breaks one."""
    charged = [stage for stage in config.credit.rewards if isinstance(stage, InvalidPenaltyConfig)]
    return config.agent.format.name == "free_text" and any(stage.flag == "format_valid" for stage in charged)


def _nothing_to_correct(line: Mapping[str, Any], config: RunConfig) -> Iterator[str]:
    """Corrections of a difference between engine and learner that is not there."""
    ratios = [value for name, value in line.items() if name.rpartition("/")[2] == "engine_ratio_max"]
    if not ratios or max(ratios) > _EQUAL or config.engine.is_separate:
        return
    for option, would in (("correction", "weigh tokens by"), ("reject", "leave out tokens for")):
        if getattr(config.objective, option):
            yield (
                f"objective.{option} changes nothing here: it would {would} the difference between the engine that "
                f"drew them and the learner, and both give each token the same probability, to {_EQUAL - 1:.2%}. It "
                "is for engines of another precision or with other weights"
            )
