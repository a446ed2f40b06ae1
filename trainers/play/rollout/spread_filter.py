"""Filter by spread (StarPO-S): a step learns only from the groups with the most spread of returns.

    kept: of N groups the max(1, floor(share N)) with the largest standard deviation of R over their episodes

Source: RAGEN, arXiv 2504.20073, StarPO-S; numbers as in the authors' code (mll-lab-nu/RAGEN,
``ragen/trainer/rollout_filter.py``, ``top_k``).

Implementation:
1. Returns are the environment's, before the rewards stage, over what could be scored; ddof 1.
2. Of equal groups the first ones are kept. So groups without spread are kept too where nothing else fills the share.
3. Where rounds replace groups without spread (``rollout.rounds``), the filter ranks those that are left.
4. With several roles a group counts by the role with the most spread.
5. What is left out has been played: it is in the episodes' statistics, and the curriculum sees its success.

Differences: the curriculum sees no advantage of a task that is left out. Left out:
their later filter, which keeps a share of the summed variance instead of a share of the groups.

Watch: ``least_spread``: 0, groups without signal are kept, and a smaller share loses nothing. ``success`` to and fro:
a step learns from few episodes; raise ``rollout.tasks``.
"""

import math
from collections.abc import Sequence

import numpy as np

from manyturn.agents.play.episode import Episode
from manyturn.agents.play.role_episodes import EpisodeRoles
from manyturn.trainers.credit.batch.turn_batch import BoolE, FloatK, IntK, ids_of
from manyturn.trainers.credit.groups.group_statistics import group_statistics


def most_spread(spread_E: FloatK, group_E: IntK, share: float) -> BoolE:
    """True for the episodes (E) of the groups that are kept.

    >>> most_spread(np.array([0.0, 0.0, 0.7, 0.7, 0.5, 0.5]), np.array([0, 0, 1, 1, 2, 2]), share=0.5)
    array([False, False,  True,  True, False, False])
    """
    groups, first = np.unique(group_E, return_index=True)
    ranked = groups[np.argsort(-spread_E[first], kind="stable")]
    return np.isin(group_E, ranked[: max(1, math.floor(share * len(groups)))])


def filtered(
    episodes: Sequence[Episode], is_kept: Sequence[bool], roles: EpisodeRoles, share: float
) -> tuple[list[bool], dict[str, float]]:
    """The episodes to learn from out of those that are kept so far, and the figures of the filter.

    Args:
        roles: of an episode; only what those that learn earn counts.
        share: of groups that is kept; 1 keeps all.
    """
    kept_E = np.array(is_kept, bool)
    if share == 1 or not kept_E.any():
        return kept_E.tolist(), {}
    group_E = ids_of(episode.key.task for episode in episodes)
    spreads = [group_statistics(return_E, group_E, ~np.isnan(return_E)).std_K for return_E in roles.returns(episodes)]
    spread_E = np.max(spreads, axis=0)
    rows = np.flatnonzero(kept_E)
    kept_E[rows] = most_spread(spread_E[rows], group_E[rows], share)
    return kept_E.tolist(), {"least_spread": float(spread_E[kept_E].min())}
