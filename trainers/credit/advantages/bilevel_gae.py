"""Bi-level GAE: first over the turns of an episode, then over the tokens inside each turn.

    turns:   A_e = sum_j (gamma_turn lambda)^j delta,   delta = r_k + gamma_turn V_(e of turn k+1) - V_e
    tokens:  A_l = delta_l + gamma lambda A_(l+1),      delta_l = gamma V_(l+1) - V_l        for l before e
    then whitened over tokens;  e: the last token of turn k's reply
    critic:  V_l towards A_l + V_l, by half the squared error, clipped (``value.clip``)

Shapes: turns K -> advantage_K (mean of the turn's tokens), token_T, targets_T.
Source: VAGEN, arXiv 2510.16907, which introduces it; numbers agree with ``compute_bi_level_gae_advantage_return`` of
RAGEN (mll-lab-nu/RAGEN), the same group's code.

Implementation:
1. The turn pass takes the value at the last token of each reply; its return there is what the token pass starts from,
   which compares it with the values before each token, so that what a reply brought is in its own advantage.
2. The token pass starts again at each turn's end, so that no credit crosses turns twice.
3. A turn's penalty is taken from the advantage of its own tokens and from no target.
4. A turn with an empty reply has no value: its reward belongs to the turn before it.
5. An episode that a limit cut off ends there, unless ``bootstrap`` lets it go on with the value of its final
   observation, which the critic then reads too.

Differences: VAGEN's own code has a lambda for each level, RAGEN's one for both, as here; gamma_turn 0.95 is RAGEN's
setting. That code takes positions of non-zero reward for the ends of turns and misses a turn whose reward is exactly 0;
here the ends are known. The critic is a head on the policy's hidden states, not a second model.

Watch: ``value_explained`` near 0 or below: the critic knows nothing yet, and advantages are discounted returns;
``value_loss`` jumps and ``value_clip_fraction`` is large: its rate is too high.
"""

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from manyturn.trainers.credit.advantages.turn_gae import over_turns
from manyturn.trainers.credit.batch.backward_recursion import Timeline
from manyturn.trainers.credit.batch.reply_tokens import places_in_reply, replies, turn_means, whitened
from manyturn.trainers.credit.batch.turn_batch import TurnBatch
from manyturn.trainers.credit.groups.gae_recursion import ValueConfig, estimate, known_values
from manyturn.trainers.credit.stages import ADVANTAGES, Advantage


class BilevelGaeConfig(ValueConfig):
    by_token: ClassVar[bool] = True
    name: Literal["bilevel_gae"] = "bilevel_gae"
    gamma_turn: float = Field(default=0.95, ge=0, le=1)
    """Discount per turn."""


@ADVANTAGES.register(BilevelGaeConfig)
def bilevel_gae(batch: TurnBatch, config: BilevelGaeConfig) -> Advantage:
    """Advantage of every reply token.

    >>> values = {"value": [[[0.25, 0.5], [0.75]], [[0.5]]]}
    >>> batch = TurnBatch.from_episodes([[0, 1], [0]], [0, 0], tokens=[[2, 1], [1]], token_columns=values)
    >>> result = bilevel_gae(batch, BilevelGaeConfig(gamma_turn=0.5))
    >>> result.token_T.round(3), result.targets_T
    (array([ 0.707,  0.   ,  0.707, -1.414]), array([0.5, 0.5, 1. , 0. ]))
    """
    reply, value_T, turn_T = replies(batch), known_values(batch), batch.turn_of_T
    value_S = value_T[reply.last_S]
    advantage_S = over_turns(batch, reply, value_S, config.gamma_turn, config.lam, bootstrap=config.bootstrap)
    return_T = np.zeros(len(value_T))
    return_T[reply.last_S] = advantage_S + value_T[reply.last_S]
    line = Timeline.of(turn_T, places_in_reply(batch))
    advantage_T = estimate(line, return_T, value_T, config.gamma, config.lam, np.zeros(len(value_T)))
    token_T = whitened(advantage_T - batch.penalty_K[turn_T], batch.scorable_K[turn_T].astype(int))
    return Advantage(turn_means(batch, token_T), token_T=token_T, targets_T=advantage_T + value_T)
