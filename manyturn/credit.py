"""Credit for turns as a library: numpy in, numpy out, no torch. Use it in any trainer.

>>> import manyturn.credit as mc
>>> batch = mc.TurnBatch.from_episodes(
...     rewards=[[0, 0, 1], [0, 0]],  # a reward for each turn of each episode
...     groups=["task 7", "task 7"],  # episodes of one group are compared with each other
...     anchors=[["hall", "kitchen", "hall"], ["hall", "cellar"]],  # equal anchors: the same situation
...     tokens=[[2, 1, 2], [1, 3]],  # how many tokens each reply has
... )
>>> earned = mc.credit(batch, mc.CreditConfig(advantage={"name": "gigpo", "gamma": 0.9}))
>>> earned.advantage_K.shape, earned.advantage_T.shape  # of K turns, and of T reply tokens
((5,), (9,))

``credit_rollouts`` takes records of another trainer's episodes, and ``on_mask`` puts the credit on its response mask:
``docs/credit-elsewhere.md``. ``audit_rollouts`` says how far a method's credit follows the true effect of turns:
``docs/credit-audit.md``. ``docs/choosing-credit.md`` says how to choose a method; ``manyturn recipes`` shows each with
its formula and source.
A package can register its own under the entry-point group ``manyturn.plugins``.

``recipe_credit`` gives the credit of a recipe, such as ``recipe_credit("bpo")``.
"""

from collections.abc import Mapping
from typing import Any

from manyturn.audit.external_continuations import Continuation
from manyturn.audit.external_rollouts import RolloutAudit, audit_rollouts
from manyturn.envs.contract.options.options import ConfigError
from manyturn.envs.contract.options.registry import Memory, Registry
from manyturn.trainers.credit.batch.turn_batch import BoolK, FloatK, FloatT, IntK, TurnBatch
from manyturn.trainers.credit.config import CreditConfig
from manyturn.trainers.credit.external_layout import by_reply, learnt_mask, on_mask, runs_of
from manyturn.trainers.credit.external_rollouts import Rollout, batch_of, credit_rollouts
from manyturn.trainers.credit.pipeline import Credit, credit
from manyturn.trainers.credit.stages import ADVANTAGES, MODULATIONS, REWARDS, Advantage, Rewarded, StageConfig

__all__ = [
    "ADVANTAGES",
    "MODULATIONS",
    "REWARDS",
    "Advantage",
    "BoolK",
    "ConfigError",
    "Continuation",
    "Credit",
    "CreditConfig",
    "FloatK",
    "FloatT",
    "IntK",
    "Memory",
    "Registry",
    "Rewarded",
    "Rollout",
    "RolloutAudit",
    "StageConfig",
    "TurnBatch",
    "audit_rollouts",
    "batch_of",
    "by_reply",
    "credit",
    "credit_rollouts",
    "learnt_mask",
    "on_mask",
    "recipe_credit",
    "runs_of",
]


def recipe_credit(name: str) -> CreditConfig:
    """The credit of a recipe, as a run with this recipe gives it.

    >>> recipe_credit("bpo").advantage.name
    'forks'

    Raises:
        ConfigError: there is no such recipe, or it changes no credit.
    """
    from manyturn.recipes import load_recipe  # which takes longer to import than all else here
    from manyturn.trainers.recipe.config import RunConfig

    recipe = load_recipe(name)
    if "credit" not in recipe:
        raise ConfigError(_about(name, recipe))
    return CreditConfig(**{"advantage": RunConfig.model_fields["credit"].default.advantage, **recipe["credit"]})


def _about(name: str, recipe: Mapping[str, Any]) -> str:
    """A line on a recipe whose name was given for a stage's."""
    if "credit" not in recipe:
        return f"{name} is a recipe without credit of its own: it changes {', '.join(recipe)} of a run of ours"
    return f"{name} is a recipe; its credit is " + ", ".join(
        f"{kind} = {it!r}" for kind, it in recipe["credit"].items()
    )


def _of_recipe(name: str) -> str | None:
    """The line on a name that is no stage's, if it is a recipe's."""
    from manyturn.recipes import load_recipe, names

    return _about(name, load_recipe(name)) if name in names() else None


for _stages in (ADVANTAGES, MODULATIONS, REWARDS):
    _stages.elsewhere = _of_recipe
