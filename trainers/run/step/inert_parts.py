"""Inert parts of a step: wrappers whose reward changes no advantage, and advantages that equal GRPO's."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from manyturn.envs.contract.wrappers.reward_wrapper import WRAPPERS
from manyturn.trainers.credit.advantages.grpo import GrpoConfig
from manyturn.trainers.credit.config import CreditConfig
from manyturn.trainers.credit.pipeline import ROUNDING, credit
from manyturn.trainers.recipe.config import EnvConfig
from manyturn.trainers.run.step.policy_update import PolicyUpdate


def idle_parts(update: PolicyUpdate, envs: Iterable[EnvConfig], config: CreditConfig) -> Iterator[str]:
    """Names of the wrappers whose part of the reward changes nothing that a policy learns from in a step.

    Credit is computed again without each part. A step that teaches nothing at all says nothing of its parts.
    """
    earned_T = update.credit.advantage_T
    least = ROUNDING * np.abs(earned_T).max(initial=0.0)
    if not least:
        return
    wrappers = {wrapper.name: wrapper for env in envs for wrapper in env.wrappers}
    for wrapper in wrappers.values():
        part = str(getattr(WRAPPERS.entry(wrapper.name).function, "part", None))
        paid_K = update.batch.parts.get(part)
        if paid_K is None or not np.nan_to_num(paid_K).any():
            continue
        rest = replace(update.batch, parts={**update.batch.parts, part: np.where(np.isnan(paid_K), np.nan, 0.0)})
        if np.abs(credit(rest, config, update.recalled).advantage_T - earned_T).max() <= least:
            yield wrapper.name


def gives_grpos(update: PolicyUpdate, config: CreditConfig) -> bool:
    """True if a method for turns gives every token the advantage of GRPO, or of Dr.GRPO, in a step.

    It does where no turn is paid, or no situation comes back. A step that teaches nothing at all shows nothing.
    """
    earned_T = update.credit.advantage_T
    least = ROUNDING * np.abs(earned_T).max(initial=0.0)
    if not least or config.advantage.compares_returns_only or config.modulation:
        return False
    plain = (config.model_copy(update={"advantage": GrpoConfig(std=std)}) for std in (True, False))
    return any(
        np.abs(credit(update.batch, config_of_grpo, update.recalled).advantage_T - earned_T).max() <= least
        for config_of_grpo in plain
    )
