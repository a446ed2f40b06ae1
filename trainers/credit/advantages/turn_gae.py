"""GAE over turns: a turn is one action, whose value is that of the state that it is taken in.

    A_k = sum_j (gamma lambda)^j delta_(k+j)        delta_k = r_k + gamma V_(k+1) - V_k        then whitened
    critic: V_k towards A_k + V_k at turn k's first token alone, by half the squared error, clipped (``value.clip``)

Shapes: turns K -> advantage_K, targets_T (at one token of each reply; NaN elsewhere: nothing to learn there).
Source: Turn-PPO, arXiv 2512.17008; with value_at = "last" numbers agree with VAGEN (mll-lab-nu/VAGEN,
``compute_gae_no_concat_advantage_return``).

Implementation:
1. Every token of a turn gets the turn's advantage; r_k is the sum of the turn's rewards.
2. The value at a token is that of the text before it: at a reply's first token, of the state in which the turn is
   taken; at its last, of that and nearly all of the reply.
3. Turns are weighted by their tokens when whitened, for that is how often a loss per token uses their advantage.
4. A turn with an empty reply has no value and no token to credit: its reward belongs to the turn before it.
5. A turn's penalty is taken from its own advantage and from no target.
6. An episode that a limit cut off ends there, unless ``bootstrap`` lets it go on with the value of its final
   observation, which the critic then reads too.

Differences: Turn-PPO has no public code; gamma 0.99 and lambda 0.9 are its best. VAGEN's code takes the value at the
last token. A critic that has read the reply expects what it brought: that is then not in the turn's own advantage but
in that of the turn before, and a bad reply is excused. VAGEN whitens over unique rows. One ratio and one clip for a
whole reply belong to the objective (``clip`` with ``ratio = "sequence"``). The critic is a head on the policy's
hidden states, not a second model.

Watch: ``value_explained`` near 0 or below: the critic knows nothing yet, and lambda below 1 hands on its errors;
``value_loss`` jumps and ``value_clip_fraction`` is large: its rate is too high.
"""

from typing import Literal

import numpy as np
from pydantic import Field

from manyturn.trainers.credit.batch.backward_recursion import FloatP, Timeline
from manyturn.trainers.credit.batch.reply_tokens import Replies, replies, token_rewards, whitened
from manyturn.trainers.credit.batch.turn_batch import TurnBatch
from manyturn.trainers.credit.groups.gae_recursion import ValueConfig, after_end, estimate, known_values
from manyturn.trainers.credit.stages import ADVANTAGES, Advantage


class TurnGaeConfig(ValueConfig):
    name: Literal["turn_gae"] = "turn_gae"
    gamma: float = Field(default=0.99, ge=0, le=1)
    """Discount per turn."""
    lam: float = Field(default=0.9, ge=0, le=1)
    """Lambda per turn: 1 trusts the rewards to come, 0 the value of the next turn."""
    value_at: Literal["first", "last"] = "first"
    """Token of a reply whose value is the turn's: the first, before which nothing of it is known, or VAGEN's last."""


@ADVANTAGES.register(TurnGaeConfig)
def turn_gae(batch: TurnBatch, config: TurnGaeConfig) -> Advantage:
    """Advantage of every turn.

    >>> values = {"value": [[[0.1, 0.5], [0.75]], [[0.5]]]}
    >>> batch = TurnBatch.from_episodes([[0, 1], [0]], [0, 0], tokens=[[2, 1], [1]], token_columns=values)
    >>> result = turn_gae(batch, TurnGaeConfig(gamma=1.0, lam=1.0))
    >>> result.total_K.round(3), result.targets_T
    (array([ 0.769, -0.206, -1.332]), array([ 1., nan,  1.,  0.]))
    """
    reply, value_T = replies(batch), known_values(batch)
    at_S = reply.first_S if config.value_at == "first" else reply.last_S
    advantage_S = over_turns(batch, reply, value_T[at_S], config.gamma, config.lam, bootstrap=config.bootstrap)
    total_K, targets_T = np.zeros(len(batch.turn_K)), np.full(len(value_T), np.nan)
    weight_S = batch.tokens_K[reply.row_S] * batch.scorable_K[reply.row_S]
    total_K[reply.row_S] = whitened(advantage_S - batch.penalty_K[reply.row_S], weight_S)
    targets_T[at_S] = advantage_S + value_T[at_S]
    return Advantage(total_K, targets_T=targets_T)


def over_turns(
    batch: TurnBatch, reply: Replies, value_S: FloatP, gamma: float, lam: float, *, bootstrap: bool
) -> FloatP:
    """GAE (S) over the turns that said something, with a value of each, not whitened."""
    reward_K = np.bincount(batch.turn_of_T, token_rewards(batch), len(batch.turn_K)).astype(np.float64, copy=False)
    end_K = after_end(batch, bootstrap=bootstrap)
    line = Timeline.of(reply.episode_S, reply.place_S)
    return estimate(line, reward_K[reply.row_S], value_S, gamma, lam, end_K[reply.row_S])
