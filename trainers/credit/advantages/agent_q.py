"""Agent Q: of two sibling turns, the one that outcomes and a judge together hold for better is preferred.

    A_k = beta / P (sum over pairs (k, l) of sigmoid(-m_kl) - sum over pairs (w, k) of sigmoid(-m_wk))
    m_wl = beta (D_w - D_l)        D_k = log pi(k) - log pi_ref(k), summed over the tokens of turn k
    (w, l) is a pair if both are siblings, their actions differ, and Q(w) - Q(l) > threshold
    Q(k) = alpha Q_played(k) + (1 - alpha) Q_judged(k)
    Q_played, Q_judged: means of the discounted return without verdicts, and of the verdict, over the siblings with k's
    action; with branches Q_played(k) = r_k + gamma mean of Q_played over the draws that follow k's

Shapes: turns K, with the part ``part`` -> advantage_K, for each token of the turn's reply.
Source: Agent Q, arXiv 2408.07199: siblings in a search tree, the mean of what search has backed up and a model's
ranking of actions mixed by alpha, pairs beyond a threshold, and Direct Preference Optimization, arXiv 2305.18290,
equation 7. Agent Q's formulas were read in descriptions by others, and are unverified against its text.

Implementation:
1. The group is the tree: siblings are turns whose situations and actions before, and whose own situation, are the same
   in all of their episodes (``paths`` in ``groups/pairs.py``). Situations are the environment's anchors. With
   ``rollout.branching`` (recipe ``agent-q-tree``) episodes fork off others: outcomes are backed up as in ``forks``, a
   draw behind which much was forked counts once, and what a branch repeats is in no pair.
2. A verdict is on the turn alone: it is in no other turn's return. Verdicts are 0 to 1, and so should returns be, or
   alpha weighs them otherwise than it says.
3. With one update a step this is the gradient of -log sigmoid(m), in the mean over the step's P pairs. pi is the policy
   before the update, pi_ref the one at the end of the warm-up.
4. A penalty for an invalid reply is taken from its own turn's return. Turns of no pair get 0. Unscorable turns are in
   no pair. Truncated episodes count as they ended.

Differences: theirs searches a tree by UCT, of which backups are the values, ranks actions by a model before they are
tried, and learns offline from one set of pairs; here the tree is what a group's episodes have in common, forks are
where chance or entropy puts them, verdicts are on turns that were played, and pairs are of the step's own episodes. The
model's explanations are not learnt.

Watch: ``paired_turns`` near 0: histories part at once, or the same is done in them. ``pairs_ranked`` rises above 0.5.
``judge_agreement`` falling while ``parts/judge`` rises: pairs teach what the judge likes; raise alpha.
"""

from dataclasses import replace
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from manyturn.trainers.credit.batch.reward_parts import part_K
from manyturn.trainers.credit.batch.turn_batch import BoolK, FloatK, TurnBatch
from manyturn.trainers.credit.groups.draws import DRAWER, draw_values, draws
from manyturn.trainers.credit.groups.group_statistics import group_statistics
from manyturn.trainers.credit.groups.pairs import REFERENCE, PairConfig, choices, pairs_inside, paths, preference
from manyturn.trainers.credit.groups.situations import anchor_groups
from manyturn.trainers.credit.stages import ADVANTAGES, Advantage


class AgentQConfig(PairConfig):
    needs: ClassVar[frozenset[str]] = frozenset({REFERENCE, "action"})
    uses: ClassVar[frozenset[str]] = frozenset({DRAWER})
    reads_verdicts: ClassVar[bool] = True
    name: Literal["agent_q"] = "agent_q"
    part: str = "judge"
    """Part that holds the verdicts."""
    alpha: float = Field(default=0.5, ge=0, lt=1)
    """Weight of the returns; the rest is that of the verdicts."""
    gamma: float = Field(default=0.95, ge=0, le=1)
    """Discount per turn of the turns' returns."""
    threshold: float = Field(default=0.0, ge=0)
    """Difference of values up to which neither of two actions is preferred."""

    def named_parts(self) -> set[str]:
        return {self.part}


@ADVANTAGES.register(AgentQConfig)
def agent_q(batch: TurnBatch, config: AgentQConfig) -> Advantage:
    """Advantage of every turn.

    Both fail. The judge holds the first one's action for right.

    >>> parts = {"outcome": [[0], [0]], "judge": [[1], [0]]}
    >>> columns = {"reference": [[0], [0]], "action": [[0], [1]]}
    >>> batch = TurnBatch.from_episodes(parts, [0, 0], anchors=["a", "a"], columns=columns)
    >>> agent_q(batch, AgentQConfig(beta=0.5)).total_K
    array([ 0.25, -0.25])
    >>> agent_q(batch, AgentQConfig(beta=0.5, threshold=0.5)).total_K
    array([0., 0.])
    """
    path_K = paths(batch, anchor_groups(batch))
    choice_K = choices(batch, path_K)
    played = replace(batch, parts={name: value for name, value in batch.parts.items() if name != config.part})
    returns_K, own_K = backed_up(played, config.gamma)
    mixed_K = config.alpha * returns_K + (1 - config.alpha) * part_K(batch, config.part)
    value_K = group_statistics(mixed_K, np.maximum(choice_K, 0), own_K & batch.scorable_K).mean_K
    pairs = pairs_inside(np.where(own_K, path_K, -1), choice_K, value_K, config.threshold)
    total_K, figures = preference(batch, pairs, config.beta)
    return Advantage(total_K, {}, figures)


def backed_up(batch: TurnBatch, gamma: float) -> tuple[FloatK, BoolK]:
    """Value of each turn (K) by what followed it, and the turns (K) that their own episodes drew.

    The second episode is a branch that repeats the first one's first turn.

    >>> batch = TurnBatch.from_episodes([[0, 1], [0, 0]], [0, 0], columns={DRAWER: [[0, 0], [0, 1]]})
    >>> backed_up(batch, gamma=1.0)
    (array([0.5, 1. , 0.5, 0. ]), array([ True,  True, False,  True]))
    """
    if DRAWER not in batch.columns:
        return batch.turn_return_K(gamma), np.ones(len(batch.turn_K), bool)
    past_K, draw_K, own_K = draws(batch)
    return draw_values(batch, past_K, draw_K, gamma) - batch.penalty_K, own_K
