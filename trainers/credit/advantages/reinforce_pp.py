"""REINFORCE++: discounted return of each reply token, whitened over the batch; no group, no critic.

    G_l = r_l + gamma G_(l+1)        A_l = (G_l - mean G) / std G

Shapes: turns K -> advantage_K (mean of the turn's tokens), token_T.
Source: REINFORCE++, arXiv 2501.03262; numbers agree with ``compute_reinforce_plus_plus_outcome_advantage`` of verl.

Implementation:
1. A turn's reward falls on the last token of its reply; a cost of KL (``kl.place = "reward"``) on every token.
2. Returns run back over all reply tokens of an episode; observations are between them without a step or a discount.
3. A turn's penalty is taken from all of its tokens and from no other.
4. Mean and std are over the reply tokens of all scorable episodes of all tasks.
5. Truncated episodes count as they ended: no critic says what would come.

Differences: verl carries the return through positions that are no reply token, as here; older code (verl-agent) cuts it
there, so that early turns earn nothing. Since one mean serves all tasks, some of the advantage says how hard the task
was; ``reinforce_pp_baseline`` takes that out.

Watch: ``advantage_std`` is near 1 by construction, less where modulated or averaged over turns;
``groups_without_signal`` says nothing with groups of one. ``return`` next to 0 or at its limit means that whitening
magnifies noise.
"""

from typing import ClassVar, Literal

from pydantic import Field

from manyturn.trainers.credit.batch.backward_recursion import Timeline
from manyturn.trainers.credit.batch.reply_tokens import places_in_episode, token_rewards, turn_means, whitened
from manyturn.trainers.credit.batch.turn_batch import FloatT, TurnBatch
from manyturn.trainers.credit.stages import ADVANTAGES, Advantage, StageConfig


class ReinforcePpConfig(StageConfig):
    uses: ClassVar[frozenset[str]] = frozenset({"reward"})
    by_token: ClassVar[bool] = True
    name: Literal["reinforce_pp"] = "reinforce_pp"
    gamma: float = Field(default=1.0, ge=0, le=1)
    """Discount per reply token."""


@ADVANTAGES.register(ReinforcePpConfig)
def reinforce_pp(batch: TurnBatch, config: ReinforcePpConfig) -> Advantage:
    """Advantage of every reply token.

    >>> batch = TurnBatch.from_episodes([[0, 1], [0]], groups=[0, 1], tokens=[[1, 1], [2]])
    >>> reinforce_pp(batch, ReinforcePpConfig()).token_T.round(3)
    array([ 0.866,  0.866, -0.866, -0.866])
    """
    turn_T = batch.turn_of_T
    return_T = token_returns(batch, config.gamma) - batch.penalty_K[turn_T]
    token_T = whitened(return_T, batch.scorable_K[turn_T].astype(int))
    return Advantage(turn_means(batch, token_T), token_T=token_T)


def token_returns(batch: TurnBatch, gamma: float) -> FloatT:
    """Discounted sum (T) of the rewards of a token and the later ones of its episode.

    >>> token_returns(TurnBatch.from_episodes([[0, 1]], groups=[0], tokens=[[2, 1]]), gamma=0.5)
    array([0.25, 0.5 , 1.  ])
    """
    line = Timeline.of(batch.episode_K[batch.turn_of_T], places_in_episode(batch))
    return line.to_go(token_rewards(batch), gamma)
