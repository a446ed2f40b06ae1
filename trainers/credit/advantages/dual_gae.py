"""Dual-discount GAE: one pass over the tokens of an episode, which discounts inside replies and between turns apart.

    A_l = delta_l + g_l m_l A_(l+1)        delta_l = r_l + g_l V_(l+1) - V_l        then whitened
    g_l, m_l = gamma_turn, lam_turn at the last token of a reply;  gamma, lam at the others
    critic: V_l towards B_l + V_l, where B is A with critic_lam in place of both lambdas

Shapes: turns K -> advantage_K (mean of the turn's tokens), token_T, targets_T.
Source: Verlog (openreview.net/forum?id=U3yTQonq10; WentseChen/Verlog, ``compute_gae_advantage_return``) for the two
discounts; VC-PPO, arXiv 2503.01491, for a lambda of the critic's targets that is not the advantage's.

Implementation:
1. With gamma = lam = 1 inside replies, a reward some turns away is as far for a reply of 3 tokens as for one of 300.
   With one discount for both, as in ``gae``, long replies discount more.
2. A critic's lambda below 1 learns from its own values, which say nothing at first: 1 learns from returns alone. The
   actor's lambda may be lower all the same.
3. A turn's reward falls on the last token of its reply; a cost of KL (``kl.place = "reward"``) on every token.
4. Advantages are whitened over the tokens of all scorable episodes, the critic's targets are not.
5. A turn's penalty is taken from the advantage of its own tokens and from no target.
6. An episode that a limit cut off ends there, unless ``bootstrap`` lets it go on with the value of its final
   observation, which the critic then reads too. With ``rollout.max_turns`` below the environment's limit these are
   Verlog's batches of a fixed number of turns.

Differences: Verlog has one lambda pair for both actor and critic; ``critic_lam`` unset is that. Its batches cut an
episode anywhere and go on with it in the next step; here a cut one is not resumed. Its critic is a second model:
``value.body = "own"``.

Watch: ``value_explained`` near 0 or below: the critic knows nothing yet, and lambda below 1 hands on its errors;
``value.pretraining`` begins with one that knows something.
"""

from typing import ClassVar, Literal, Self

import numpy as np
from pydantic import Field

from manyturn.trainers.credit.batch.backward_recursion import Timeline
from manyturn.trainers.credit.batch.reply_tokens import places_in_episode, replies, token_rewards, turn_means, whitened
from manyturn.trainers.credit.batch.turn_batch import FloatT, TurnBatch
from manyturn.trainers.credit.groups.gae_recursion import ValueConfig, after_end, estimate, known_values
from manyturn.trainers.credit.stages import ADVANTAGES, Advantage


class DualGaeConfig(ValueConfig):
    by_token: ClassVar[bool] = True
    name: Literal["dual_gae"] = "dual_gae"
    gamma_turn: float = Field(default=0.99, ge=0, le=1)
    """Discount from the last token of a reply to the next turn."""
    lam_turn: float = Field(default=0.95, ge=0, le=1)
    """Lambda from the last token of a reply to the next turn."""
    critic_lam: float | None = Field(default=None, ge=0, le=1)
    """Lambda of the critic's targets, inside replies and between turns; unset: those of the advantage."""

    def of_returns(self) -> Self:
        return self.model_copy(update={"critic_lam": 1.0})


@ADVANTAGES.register(DualGaeConfig)
def dual_gae(batch: TurnBatch, config: DualGaeConfig) -> Advantage:
    """Advantage of every reply token.

    >>> values = {"value": [[[0.5, 0.5], [0.75]], [[0.5]]]}
    >>> batch = TurnBatch.from_episodes([[0, 1], [0]], [0, 0], tokens=[[2, 1], [1]], token_columns=values)
    >>> dual_gae(batch, DualGaeConfig(gamma_turn=0.5, lam_turn=1.0)).targets_T
    array([0.5, 0.5, 1. , 0. ])
    >>> dual_gae(batch, DualGaeConfig(gamma_turn=0.5, lam_turn=0.0, critic_lam=1.0)).token_T.round(3)
    array([ 0.   ,  0.   ,  1.225, -1.225])
    """
    turn_T, value_T = batch.turn_of_T, known_values(batch)
    last_T = np.zeros(len(turn_T), bool)
    last_T[replies(batch).last_S] = True
    line = Timeline.of(batch.episode_K[turn_T], places_in_episode(batch))
    end_T = after_end(batch, bootstrap=config.bootstrap)[turn_T]
    gamma_T = np.where(last_T, config.gamma_turn, config.gamma)

    def over_tokens(lam: float | FloatT) -> FloatT:
        return estimate(line, token_rewards(batch), value_T, gamma_T, lam, end_T)

    advantage_T = over_tokens(np.where(last_T, config.lam_turn, config.lam))
    critic_T = advantage_T if config.critic_lam is None else over_tokens(config.critic_lam)
    token_T = whitened(advantage_T - batch.penalty_K[turn_T], batch.scorable_K[turn_T].astype(int))
    return Advantage(turn_means(batch, token_T), token_T=token_T, targets_T=critic_T + value_T)
