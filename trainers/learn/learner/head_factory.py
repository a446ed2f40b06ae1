"""Choice of the head that a section of the configuration describes."""

import torch
from transformers import PreTrainedModel

from manyturn.agents.model.model_internals import output_head
from manyturn.trainers.learn.heads.head_config import (
    HeadConfig,
    ImplicitConfig,
    ProgressHeadConfig,
    ValueHeadConfig,
)
from manyturn.trainers.learn.heads.heads import LearnerHead, ProgressHead, ValueHead
from manyturn.trainers.learn.heads.implicit_reward import ImplicitRewards
from manyturn.trainers.learn.heads.scalar_model import BodyPasses, BodySettings, OwnBody
from manyturn.trainers.learn.heads.second_policy import OwnPolicy
from manyturn.trainers.learn.heads.separate_critic import FixedEstimator, OwnCritic
from manyturn.trainers.learn.learner.learner_config import LearnerConfig
from manyturn.trainers.learn.passes.frozen_states import FrozenStates
from manyturn.trainers.learn.passes.pass_budget import PassBudget

# Times learner.lr. Turn-PPO's critic learns 5 to 10 times as fast as its actor.
# iStar's second policy learns twice as fast as its policy.
_CRITIC, _ESTIMATOR, _IMPLICIT = 5, 2, 2


def head_of(
    config: HeadConfig | ImplicitConfig,
    policy: PreTrainedModel,
    learner: LearnerConfig,
    budget: PassBudget,
    frozen: FrozenStates | None = None,
    device: torch.device | None = None,
    temperature: float = 1.0,
) -> LearnerHead:
    """The head, on the policy's hidden states or on a body of its own.

    Args:
        budget: of the passes of a body of its own.
        frozen: what is kept of the policy's layers that do not learn.
        device: where it goes; None: to the policy's.
        temperature: at which the policy is read.
    """
    passes = BodyPasses(budget, learner.packing, frozen)
    width, own_type = policy.config.get_text_config().hidden_size, output_head(policy).weight.dtype
    like = torch.empty(0, dtype=own_type, device=policy.device if device is None else device)
    match config:
        case ValueHeadConfig(body="policy"):
            return ValueHead(config, width, like)
        case ProgressHeadConfig(body="policy"):
            return ProgressHead(config, width, like)
        case ValueHeadConfig(own=own):
            settings = BodySettings(own.hidden, own.lr or _CRITIC * learner.lr)
            return OwnCritic(own, OwnBody(ValueHead.name, policy, like, settings, passes))
        case ProgressHeadConfig():
            exploration = config.exploration
            lr = exploration.lr or _ESTIMATOR * learner.lr
            settings = BodySettings(exploration.hidden, lr, exploration.trains == "all")
            return FixedEstimator(config, OwnBody(ProgressHead.name, policy, like, settings, passes))
        case ImplicitConfig():
            fit = OwnPolicy(
                ImplicitRewards.name, policy, like, config.lr or _IMPLICIT * learner.lr, temperature, passes
            )
            return ImplicitRewards(config, fit, learner.max_grad_norm)
    raise TypeError(f"{type(config).__name__} belongs to no head")
