"""Step-DPO: of two episodes that began equally, the better one's first different turn is preferred to the worse one's.

    A_k = beta / P (sum over pairs (k, l) of sigmoid(-m_kl) - sum over pairs (w, k) of sigmoid(-m_wk))
    m_wl = beta (D_w - D_l)        D_k = log pi(k) - log pi_ref(k), summed over the tokens of turn k
    (w, l) is a pair if all situations and actions before them, and their own situation, are the same, their actions
    differ, and the return of w's episode is above that of l's

Shapes: turns K -> advantage_K, for each token of the turn's reply.
Source: Step-DPO, arXiv 2406.18629: the step at which a solution first goes wrong against one that goes right, after the
same steps before; Direct Preference Optimization, arXiv 2305.18290.

Implementation:
1. With one update a step this is the gradient of -log sigmoid(m), in the mean over the step's P pairs
   (``groups/pairs.py``). pi is the policy before the update, pi_ref the one at the end of the warm-up.
2. Two episodes of a task make one pair at most, where they first differ. Where the environment answered one action in
   two ways they make none.
3. Situations are the environment's anchors. Where these say all that the policy read, both of a pair have one prompt.
4. A penalty for an invalid reply is taken from its own turn's score. Turns of no pair get 0. Unscorable episodes are in
   no pair. Truncated episodes count as they ended.

Differences: theirs has a model find the first wrong step, and draws the right one from the policy again, for a
set of pairs that is learnt offline; here the group's episodes say where a success and a failure part, and pairs are of
the step's own episodes. That turn need not be the mistake: a failure may go wrong later.

Watch: ``paired_turns``: near 0 where all episodes of a task end equally well. ``pairs_ranked``, the share of pairs in
which the policy prefers the better one more than the reference does, rises above 0.5, and ``pair_margin`` above 0.
``rollout.branching`` makes episodes that part late, which say more about turns at the end.
"""

from typing import ClassVar, Literal

from manyturn.trainers.credit.batch.turn_batch import TurnBatch
from manyturn.trainers.credit.groups.pairs import REFERENCE, PairConfig, choices, pairs_inside, paths, preference
from manyturn.trainers.credit.groups.situations import anchor_groups
from manyturn.trainers.credit.stages import ADVANTAGES, Advantage


class StepDpoConfig(PairConfig):
    needs: ClassVar[frozenset[str]] = frozenset({REFERENCE, "action"})
    compares_returns_only: ClassVar[bool] = True
    name: Literal["step_dpo"] = "step_dpo"


@ADVANTAGES.register(StepDpoConfig)
def step_dpo(batch: TurnBatch, config: StepDpoConfig) -> Advantage:
    """Advantage of every turn.

    The first two episodes part at their second turn, the third parts from both at its first.

    >>> columns = {"reference": [[0, 0], [0, 0], [0]], "action": [[0, 1], [0, 2], [3]]}
    >>> batch = TurnBatch.from_episodes([[0, 1], [0, 0], [0]], [0] * 3, anchors=["ab", "ab", "a"], columns=columns)
    >>> step_dpo(batch, StepDpoConfig(beta=1.0)).total_K
    array([ 0.25,  0.25,  0.  , -0.25, -0.25])
    """
    path_K = paths(batch, anchor_groups(batch))
    pairs = pairs_inside(path_K, choices(batch, path_K), batch.score_K())
    total_K, figures = preference(batch, pairs, config.beta)
    return Advantage(total_K, {}, figures)
