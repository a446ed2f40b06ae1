"""GAE over the reply tokens of an episode: proximal policy optimisation with a critic.

    A_l = sum_j (gamma lambda)^j delta_(l+j)        delta_l = r_l + gamma V_(l+1) - V_l        then whitened
    critic: V_l towards A_l + V_l, by half the squared error, clipped like PPO's ratio (``value.clip``)

Shapes: turns K -> advantage_K (mean of the turn's tokens), token_T, targets_T.
Source: arXiv 1506.02438; numbers agree with ``compute_gae_advantage_return`` of verl, which skips masked
positions, and with that of older code (verl-agent), which takes a step at each of them, if every position is a token.

Implementation:
1. Steps are the T reply tokens, those of an episode in one row: observations are between turns without a step, a
   discount or a value. V_l is read before token l is said.
2. A turn's reward falls on the last token of its reply; a cost of KL (``kl.place = "reward"``) on every token.
3. Advantages are whitened over the tokens of all scorable episodes, the critic's targets are not.
4. A turn's penalty is taken from the advantage of its own tokens and from no target.
5. An episode that a limit cut off ends there, unless ``bootstrap`` lets it go on with the value of its final
   observation, which the critic then reads too.

Differences: gamma and lambda are 1 as in verl; the paper recommends less of both. Older code steps over padding and
observations too, so that credit decays with their length. The critic is a head on the policy's hidden states that does
not change the policy (``value.into_policy``), not a second model.

Watch: ``value_explained`` near 0 or below: the critic knows nothing yet, and advantages are returns; near 1 with a
stalled ``success``: nothing surprises it. ``value_loss`` jumps and ``value_clip_fraction`` is large: its rate is too
high.
"""

from typing import ClassVar, Literal

from manyturn.trainers.credit.batch.backward_recursion import Timeline
from manyturn.trainers.credit.batch.reply_tokens import places_in_episode, token_rewards, turn_means, whitened
from manyturn.trainers.credit.batch.turn_batch import TurnBatch
from manyturn.trainers.credit.groups.gae_recursion import ValueConfig, after_end, estimate, known_values
from manyturn.trainers.credit.stages import ADVANTAGES, Advantage


class GaeConfig(ValueConfig):
    by_token: ClassVar[bool] = True
    name: Literal["gae"] = "gae"


@ADVANTAGES.register(GaeConfig)
def gae(batch: TurnBatch, config: GaeConfig) -> Advantage:
    """Advantage of every reply token.

    >>> values = {"value": [[[0.5, 0.5], [0.75]], [[0.5]]]}
    >>> batch = TurnBatch.from_episodes([[0, 1], [0]], [0, 0], tokens=[[2, 1], [1]], token_columns=values)
    >>> result = gae(batch, GaeConfig())
    >>> result.token_T.round(3), result.targets_T
    (array([ 0.66 ,  0.66 ,  0.132, -1.453]), array([1., 1., 1., 0.]))
    """
    turn_T, value_T = batch.turn_of_T, known_values(batch)
    episode_T = batch.episode_K[turn_T]
    line = Timeline.of(episode_T, places_in_episode(batch))
    end_T = after_end(batch, bootstrap=config.bootstrap)[turn_T]
    advantage_T = estimate(line, token_rewards(batch), value_T, config.gamma, config.lam, end_T)
    token_T = whitened(advantage_T - batch.penalty_K[turn_T], batch.scorable_K[turn_T].astype(int))
    return Advantage(turn_means(batch, token_T), token_T=token_T, targets_T=advantage_T + value_T)
