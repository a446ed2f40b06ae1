"""Combinations of options that cannot work, or in which one does nothing: each is refused with the reason and the mend.

A rule takes a configuration whose parts are valid by themselves, and returns why it is refused, or None. What a part
forbids by itself stands beside its options. Rules for stages know those of this project; a registered function of
somebody else's is judged when it runs.
"""

from typing import Any

from manyturn.agents.scripted import SCRIPTS
from manyturn.envs.contract.options import Rule
from manyturn.trainers.credit.advantages.opo import OpoConfig
from manyturn.trainers.credit.groups import GroupConfig
from manyturn.trainers.credit.turn_levels import TurnLevelConfig

# Advantages that know nothing of an episode but its return; GiGPO without its step level is another.
_OF_RETURNS = frozenset({"grpo", "rloo", "opo", "loop", "reinforce_pp_baseline", "stratified", "spo"})


# ---- of a whole run: rules that take a RunConfig


def _attribution_counts(config: Any) -> str | None:
    advantage = config.credit.advantage
    returns_alone = advantage.name in _OF_RETURNS or (advantage.name == "gigpo" and advantage.turn_weight == 0)
    whole = [stage for stage in config.credit.rewards if stage.name == "spa" and stage.completeness != "none"]
    if returns_alone and whole:
        return (
            f"{advantage.name} compares whole returns, which spa leaves as they are with completeness = "
            f"{whole[0].completeness!r}: take turn_gae or gigpo with its step level, or completeness = 'none'"
        )
    return None


def _credit_of_tokens_counts(config: Any) -> str | None:
    advantage = config.credit.advantage
    if config.objective.name == "gmpo" and advantage.by_token:
        return (
            f"{advantage.name} gives credit to tokens, which gmpo averages away over a reply: take an advantage of "
            "turns, such as turn_gae or gigpo, or another objective"
        )
    return None


def _groups_can_be_compared(config: Any) -> str | None:
    rollout, advantage = config.rollout, config.credit.advantage
    if rollout.group > 1:
        return None
    relative = isinstance(advantage, GroupConfig | OpoConfig | TurnLevelConfig)
    if relative and getattr(advantage, "singleton", "zero") == "zero":
        return (
            f"rollout.group = 1 leaves {advantage.name} nothing to compare an episode with: raise rollout.group, or "
            "take spo, reinforce_pp or gae"
        )
    if rollout.rounds > 1:
        return (
            f"rollout.rounds = {rollout.rounds} plays groups again whose episodes earn the same, as every group of one "
            "does: raise rollout.group, or leave rounds out"
        )
    return None


def _engine_and_learner_differ(config: Any) -> str | None:
    given = [name for name in ("correction", "reject") if getattr(config.objective, name)]
    if given and config.learner.old_logprobs == "engine":
        return (
            f"objective.{given[0]} compares the engine with the learner, which learner.old_logprobs = 'engine' takes "
            "for the same: set it to 'learner', or leave it out"
        )
    return None


def _rejected_once(config: Any) -> str | None:
    kinds = [f"{rule.divergence} over {rule.over}" for rule in config.objective.reject]
    if twice := sorted({kind for kind in kinds if kinds.count(kind) > 1}):
        return f"objective.reject has two rules of {twice[0]}, of which the narrower counts alone: keep that one"
    return None


def _samples_are_fresh(config: Any) -> str | None:
    learner, played = config.learner, config.rollout.tasks * config.rollout.group
    if config.objective.name != "reinforce":
        return None
    if learner.epochs > 1:
        return (
            f"learner.epochs = {learner.epochs} learns from samples of an older policy, for which reinforce has no "
            "ratio: set it to 1, or take the objective clip"
        )
    if learner.minibatch < played:
        return (
            f"learner.minibatch = {learner.minibatch} makes several updates of {played} episodes, for which reinforce "
            f"has no ratio: set it to {played}"
        )
    return None


def _horizon_grows(config: Any) -> str | None:
    horizon = config.rollout.horizon
    if horizon is not None and 0 < config.steps <= horizon.every:
        return (
            f"rollout.horizon.every = {horizon.every} is never reached in {config.steps} steps, so that the turn limit "
            "does not grow: lower it, or set rollout.max_turns instead of a horizon"
        )
    return None


def _length_can_be_passed(config: Any) -> str | None:
    for stage in config.credit.rewards:
        if stage.name == "overlong" and stage.over == "reply":
            free, longest = stage.max_tokens - stage.buffer, config.sampling.max_tokens
            if free >= longest:
                return (
                    f"overlong has no effect: it begins behind {free} tokens of a reply, and sampling.max_tokens = "
                    f"{longest} ends it before: lower its max_tokens"
                )
    return None


def _somebody_learns(config: Any) -> str | None:
    if config.roles and set(config.roles.values()) <= SCRIPTS.keys():
        return f"[roles] gives every role to {' and '.join(sorted(set(config.roles.values())))}: nobody would learn"
    return None


def _branches_are_of_one_policy(config: Any) -> str | None:
    if config.roles and config.rollout.branching is not None:
        return "rollout.branching repeats what one policy said, and [roles] names several: leave one of them out"
    return None


OF_A_RUN: tuple[Rule, ...] = (
    _somebody_learns,
    _branches_are_of_one_policy,
    _attribution_counts,
    _credit_of_tokens_counts,
    _groups_can_be_compared,
    _engine_and_learner_differ,
    _rejected_once,
    _samples_are_fresh,
    _horizon_grows,
    _length_can_be_passed,
)
