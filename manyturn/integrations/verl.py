"""verl: credit for each token, in a function of verl 0.9.1 that was run outside of its trainer.

verl hands an estimator rewards of tokens, a mask and the names of groups. In the trainer of ``trainer.use_v1=False``,
the one named ``gdpo`` is given the columns of the batch too, and these have what an agent loop put into its
``extra_fields``. So credit takes the place of ``gdpo``. An agent loop tells of an episode's turns in
``extra_fields["credit"] = {"rewards": [0, 0, 1], "anchors": ["hall", "kitchen", "cellar"]}``, fields of ``Rollout``;
``EpisodeLoop`` of ``manyturn.integrations.verl_loop`` does.

What verl cannot carry is refused: methods with a critic. A row that a method leaves out keeps its mask with advantage
0. The rewards of tokens are not read, so ``algorithm.use_kl_in_reward`` has no effect. Source: the package verl 0.9.1.
"""

import inspect
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import torch

from manyturn.envs.contract.options.registry import Memory
from manyturn.integrations.rollout_fields import with_same_parts
from manyturn.trainers.credit.config import CreditConfig
from manyturn.trainers.credit.external_layout import learnt_mask, on_mask
from manyturn.trainers.credit.external_rollouts import Rollout, credit_rollouts

PLACE = "gdpo"
COLUMN = "credit"


class CreditEstimator:
    """An estimator of verl's that returns an advantage for each token.

    Attributes:
        memory: what the methods remember from batch to batch. verl's checkpoints do not hold it.
    """

    def __init__(self, credit: CreditConfig):
        if "value" in credit.needs:
            raise ValueError(f"{credit.needs['value']} learns a critic, and verl gives {PLACE} none: take another")
        self.credit = credit
        self.memory: Memory = {}

    def __call__(
        self,
        token_level_rewards: torch.Tensor,
        response_mask: torch.Tensor,
        index: Sequence[Any],
        non_tensor_batch: Mapping[str, Any] | None = None,
        **_: Any,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Advantages and returns (B, T), which are the same. Raises ValueError if a row's turns are not known."""
        mask_BT = response_mask.detach().cpu().numpy()
        column = (non_tensor_batch or {}).get(COLUMN)
        if column is None or any(one is None for one in column):
            raise ValueError(
                f"verl gave no column {COLUMN!r} for each row: set trainer.use_v1=False and algorithm.adv_estimator="
                f"{PLACE}, and put the turns into the agent loop's extra_fields[{COLUMN!r}]"
            )
        rollouts = [_rollout(index[row], mask_BT[row], dict(one)) for row, one in enumerate(column)]
        earned = credit_rollouts(with_same_parts(rollouts), self.credit, self.memory)
        self.memory = dict(earned.memory)
        placed_BT = on_mask(earned.advantage_T, earned.batch, mask_BT) * learnt_mask(earned, mask_BT)
        advantage_BT = torch.as_tensor(placed_BT, dtype=torch.float32, device=response_mask.device)
        return advantage_BT, advantage_BT


def take_place(credit: CreditConfig) -> CreditEstimator:
    """Let credit take the place of ``gdpo`` in this process, which is that of verl's task runner.

    Raises:
        ImportError: the installed verl has no such place, or there is none.
        ValueError: a method does not fit.
    """
    try:
        registry = import_module("verl.trainer.ppo.core_algos").ADV_ESTIMATOR_REGISTRY
        asks = inspect.getsource(import_module("verl.trainer.ppo.ray_trainer").compute_advantage)
    except (ImportError, AttributeError) as problem:
        raise ImportError(f"this verl has no place for credit of tokens: {problem}") from problem
    if PLACE not in registry or f'"{PLACE}"' not in asks or '["non_tensor_batch"]' not in asks:
        raise ImportError(f"this verl has no place for credit of tokens: {PLACE} is not given the batch's columns")
    registry[PLACE] = estimator = CreditEstimator(credit)
    return estimator


def _rollout(group: Any, mask: Any, fields: dict[str, Any]) -> Rollout:
    return Rollout(**({"group": group} | ({} if "tokens" in fields else {"mask": mask}) | fields))
