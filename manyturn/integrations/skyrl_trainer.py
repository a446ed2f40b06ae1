"""SkyRL's trainer: an estimator, and a class that tells it of turns, run with skyrl 0.4.0 without its workers.

An estimator that is registered in SkyRL gets rewards of tokens, a mask without the ends of turns, and names of groups.
No method for turns can do with that. What an environment returns from ``get_metrics`` does reach the trainer, row by
row, as ``env_metrics``. So an episode's turns are in there, ``{"credit": {"rewards": [0, 0, 1], "anchors": ["hall",
"kitchen", "cellar"]}}``, fields of ``Rollout``; an exported environment of ours fills it in. ``credit_trainer`` makes a
class that hands this to the estimator, with SkyRL's mask of the loss, in which a run of ones is a reply.

What SkyRL cannot carry is refused: methods with a critic, step-wise training, and options that change rewards or masks
before the estimator sees them. Source: the package skyrl 0.4.0, ``skyrl.train.trainer`` and ``ppo_utils``.
"""

import inspect
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from manyturn.envs.contract.options.registry import Memory
from manyturn.integrations.rollout_fields import with_same_parts
from manyturn.trainers.credit.config import CreditConfig
from manyturn.trainers.credit.external_layout import learnt_mask, on_mask
from manyturn.trainers.credit.external_rollouts import Rollout, credit_rollouts

NAME = "manyturn"
COLUMN = "credit"
REGISTRY = "skyrl.backends.skyrl_train.utils.ppo_utils"
UNFIT = {
    "generator.step_wise_trajectories": "gives a trajectory one advantage: leave it out",
    "generator.batched": "plays one turn only: leave it out",
    "generator.apply_overlong_filtering": "takes replies out of the mask: set CreditConfig(truncated='left_out')",
    "generator.zero_reward_on_non_stop": "changes rewards that credit does not read: leave it out",
    "trainer.algorithm.zero_variance_filter": "takes replies out of the mask: leave it out",
    "trainer.algorithm.use_kl_in_reward": "changes rewards that credit does not read: take use_kl_loss instead",
}


class EstimatorBatch(NamedTuple):
    """A batch's episodes, and where the model spoke in them.

    Attributes:
        rollouts: E of them, with tokens or a mask.
        mask_ET: SkyRL's mask of the loss.
    """

    rollouts: list[Rollout]
    mask_ET: NDArray[Any]


class TurnEstimator:
    """An estimator of SkyRL's that returns an advantage for each token.

    Attributes:
        memory: what the methods remember from batch to batch. SkyRL's checkpoints do not hold it.
        batch: what the trainer says of the batch that is being computed; None in between.
        learnt_ET: of the last batch, the mask without episodes that nothing is learnt from.
    """

    def __init__(self, credit: CreditConfig):
        if "value" in credit.needs:
            raise ValueError(f"{credit.needs['value']} learns a critic, and SkyRL gives {NAME} none: take another")
        self.credit = credit
        self.memory: Memory = {}
        self.batch: EstimatorBatch | None = None
        self.learnt_ET: NDArray[Any] = np.zeros((0, 0))

    def __call__(
        self, token_level_rewards: torch.Tensor, response_mask: torch.Tensor, index: Sequence[str], **_: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Advantages and returns (B, T), which are the same: 0 where the environment spoke, and in SkyRL's padding."""
        if self.batch is None:
            raise ValueError(f"SkyRL's own trainer tells {NAME} of no turns: train with credit_trainer(RayPPOTrainer)")
        rollouts, mask_ET = self.batch
        earned = credit_rollouts(with_same_parts(rollouts), self.credit, self.memory)
        self.memory, self.learnt_ET = dict(earned.memory), learnt_mask(earned, mask_ET)
        advantage_BT = torch.zeros_like(token_level_rewards, dtype=torch.float32)
        placed_ET = on_mask(earned.advantage_T, earned.batch, mask_ET) * (self.learnt_ET != 0)
        advantage_BT[: len(rollouts)] = torch.as_tensor(placed_ET).to(advantage_BT)
        return advantage_BT, advantage_BT.clone()


def register(credit: CreditConfig) -> TurnEstimator:
    """Register the estimator ``manyturn`` in this process, for ``trainer.algorithm.advantage_estimator=manyturn``.

    Raises:
        ImportError: the installed SkyRL has no registry of estimators, or there is none.
        ValueError: a method does not fit.
    """
    registry, estimator = _registry(), TurnEstimator(credit)
    if NAME in registry.list_available():
        registry.unregister(NAME)
    registry.register(NAME, estimator)
    return estimator


def credit_trainer(parent: type[Any]) -> type[Any]:
    """A subclass of ``RayPPOTrainer``, or of another trainer of SkyRL's, whose estimator ``manyturn`` sees turns.

    Raises:
        ImportError: the installed SkyRL has no place for credit of tokens.
    """
    if lacking := lacks(parent):
        raise ImportError(f"this SkyRL has no place for credit of tokens: {parent.__name__} {lacking}")

    class CreditTrainer(parent):
        """Hands the turns of ``env_metrics`` to the estimator."""

        def __init__(self, *arguments: Any, **options: Any):
            super().__init__(*arguments, **options)
            if reason := _unfit(self.cfg):
                raise ValueError(reason)

        def convert_to_training_input(self, generator_output: Mapping[str, Any], uids: list[str]) -> Any:
            data = super().convert_to_training_input(generator_output, uids)
            data.metadata[COLUMN] = _credit_fields(generator_output, uids)
            return data

        def compute_advantages_and_returns(self, data: Any) -> Any:
            estimator, column = _registry().get(NAME), data.metadata.pop(COLUMN)
            mask_ET = data["loss_mask"][: len(column)].cpu().numpy()
            rows = zip(
                data.metadata["uids"][: len(column)], mask_ET, column, strict=True
            )  # the rest is SkyRL's padding
            estimator.batch = EstimatorBatch([_rollout(*row) for row in rows], mask_ET)
            try:
                data = super().compute_advantages_and_returns(data)
            finally:
                estimator.batch = None
            data["loss_mask"][: len(column)] = torch.as_tensor(estimator.learnt_ET).to(data["loss_mask"])
            return data

    return CreditTrainer


def lacks(trainer: type[Any]) -> str | None:
    """Missing feature of this SkyRL trainer version; None if it takes credit for tokens."""
    for method, words, lack in (
        ("convert_to_training_input", '"uids"', "does not name the groups of a batch"),
        ("compute_advantages_and_returns", 'index=data.metadata["uids"]', "gives its estimators no groups"),
    ):
        function = getattr(trainer, method, None)
        if function is None or words not in inspect.getsource(function):
            return lack
    return None


def _unfit(cfg: Any) -> str | None:
    """The reason for which these options of SkyRL and credit for tokens do not go together; None if they do."""
    if (name := cfg.trainer.algorithm.advantage_estimator) != NAME:
        return f"trainer.algorithm.advantage_estimator = {name!r} gets no turns: set it to {NAME}"
    for path, why in UNFIT.items():
        value: Any = cfg
        for step in path.split("."):
            value = getattr(value, step, None)
        if value:
            return f"{path} = {value!r} {why}"
    return None


def _credit_fields(output: Mapping[str, Any], uids: Sequence[str]) -> list[dict[str, Any]]:
    columns = [(one or {}).get(COLUMN) for one in output.get("env_metrics") or [None] * len(uids)]
    present = [dict[str, Any](one) for one in columns if one is not None]
    if len(present) < len(uids):
        raise ValueError(
            f"the environment says nothing of its turns: export it with manyturn, or return {COLUMN!r} from its "
            "get_metrics, with rewards and anchors of each turn"
        )
    return present


def _rollout(group: Any, mask_T: Any, fields: dict[str, Any]) -> Rollout:
    return Rollout(**({"group": group} | ({} if "tokens" in fields else {"mask": mask_T}) | fields))


def _registry() -> Any:
    try:
        return import_module(REGISTRY).AdvantageEstimatorRegistry
    except (ImportError, AttributeError) as problem:
        raise ImportError(f"this SkyRL has no registry of estimators: {problem}") from problem
