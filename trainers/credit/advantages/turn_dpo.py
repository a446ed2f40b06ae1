"""DPO on turns: in one situation, the action that earned more is preferred to the one that earned less.

    A_k = beta / P (sum over pairs (k, l) of sigmoid(-m_kl) - sum over pairs (w, k) of sigmoid(-m_wk))
    m_wl = beta (D_w - D_l)        D_k = log pi(k) - log pi_ref(k), summed over the tokens of turn k
    (w, l) is a pair if both are of one situation, their actions differ, and Q(w) - Q(l) > threshold
    Q(k): mean of the returns G of all turns that did k's action in k's situation;  G_k = sum_j gamma^(j-k) r_j

Shapes: turns K -> advantage_K, for each token of the turn's reply.
Source: Direct Preference Optimization, arXiv 2305.18290, on pairs of actions by their values, as Agent Q, arXiv
2408.07199, and step-level Q-value models, arXiv 2409.09345, form them in a search tree.

Implementation:
1. With one update a step this is the gradient of -log sigmoid(m), in the mean over the step's P pairs
   (``groups/pairs.py``). pi is the policy before the update, pi_ref the one at the end of the warm-up.
2. Situations are the environment's anchors of one task. Prompts of two turns in one situation may differ by what came
   before; with ``situation = "history"`` the anchors before them are equal too.
3. A penalty for an invalid reply is taken from its own turn's return, and so makes pairs.
4. Turns of no pair get 0. Unscorable turns are in no pair. Truncated episodes count as they ended.

Differences: theirs search a tree with one prompt for all siblings, take values from the search and from a judge, and
learn offline from one set of pairs; here siblings are what a group's episodes have in common, and pairs are of the
step's own episodes. Left out: anything that keeps the probability of the better turn from falling with the worse one's.

Watch: ``paired_turns`` near 0: situations hardly come twice, or the same is done in them. ``pairs_ranked``, the share
of pairs in which the policy prefers the better one more than the reference does, rises above 0.5, ``pair_margin`` above
0. ``reference_kl`` large with ``success`` falling: raise beta.
"""

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from manyturn.trainers.credit.batch.turn_batch import TurnBatch
from manyturn.trainers.credit.groups.group_statistics import group_statistics
from manyturn.trainers.credit.groups.pairs import REFERENCE, PairConfig, choices, pairs_inside, preference
from manyturn.trainers.credit.groups.situations import SituationConfig, situations
from manyturn.trainers.credit.stages import ADVANTAGES, Advantage


class TurnDpoConfig(SituationConfig, PairConfig):
    needs: ClassVar[frozenset[str]] = frozenset({REFERENCE, "action"})
    name: Literal["turn_dpo"] = "turn_dpo"
    gamma: float = Field(default=0.95, ge=0, le=1)
    """Discount per turn of the turns' returns."""
    threshold: float = Field(default=0.0, ge=0)
    """Difference of mean returns up to which neither of two actions is preferred."""


@ADVANTAGES.register(TurnDpoConfig)
def turn_dpo(batch: TurnBatch, config: TurnDpoConfig) -> Advantage:
    """Advantage of every turn.

    >>> columns = {"reference": [[0, 0], [0]], "action": [[0, 1], [1]]}
    >>> batch = TurnBatch.from_episodes([[0, 1], [0]], [0, 0], anchors=["ab", "a"], columns=columns)
    >>> turn_dpo(batch, TurnDpoConfig(beta=0.5)).total_K
    array([ 0.25,  0.  , -0.25])
    """
    situation_K = situations(batch, config)
    choice_K = choices(batch, situation_K)
    return_K = batch.turn_return_K(config.gamma)
    value_K = group_statistics(return_K, np.maximum(choice_K, 0), batch.scorable_K).mean_K
    total_K, figures = preference(batch, pairs_inside(situation_K, choice_K, value_K, config.threshold), config.beta)
    return Advantage(total_K, {}, figures)
