"""Dynamic sampling (DAPO): groups whose episodes all earn the same teach nothing, so others are played in their place.

    round 1 plays N groups; round i plays N - (groups kept so far); a group is kept if max R > min R
    the last of ``rounds`` keeps everything

Source: DAPO, arXiv 2503.14476, section 3.2; the filter, and keeping all of the last round, as in verl-role
(``filter_group_data``).

Implementation:
1. A step always has its number of groups, so that the size of updates does not change.
2. The filter looks at the environment's returns, before the rewards stage.
3. A group of one has no spread, hence rounds with groups of one are refused.
4. Groups that were played and not kept are in the episodes' statistics and in the curriculum's findings.

Differences: the paper plays until the batch is full, verl at most 10 times. Left out: playing more groups than are
missing, of which the surplus would be thrown away; verl keeps groups of one.

Watch: ``rounds`` near its bound: most groups teach nothing, and a step costs that many times its episodes;
``groups_without_signal`` is what the last round had to keep.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from manyturn.agents.play.episode import Episode
from manyturn.agents.play.role_episodes import ONLY_ROLE, EpisodeRoles
from manyturn.trainers.credit.batch.turn_batch import BoolK, IntK, ids_of
from manyturn.trainers.credit.groups.group_statistics import group_statistics


def with_spread(return_E: NDArray[np.float64], group_E: IntK) -> BoolK:
    """True for the episodes (E) of groups with different returns; NaN, which is no return, does not count.

    >>> with_spread(np.array([1.0, 0.0, 1.0, 1.0, np.nan]), np.array([7, 7, 8, 8, 8]))
    array([ True,  True, False, False, False])
    """
    return group_statistics(return_E, group_E, ~np.isnan(return_E)).std_K > 0


@dataclass(frozen=True)
class Refill:
    """The episodes that a step has played so far, and the groups that it still lacks.

    Attributes:
        groups: groups that the step is to have.
        size: episodes of a group.
        rounds: most rounds; 1 keeps every group.
        roles: of an episode; a group is kept if the returns of one that learns differ.
        round: rounds that were played.
        played: their episodes, all members of a group next to each other.
        is_kept: whether the step learns from the episode, one per episode.

    >>> Refill(groups=16, size=8, rounds=3).missing
    16
    """

    groups: int
    size: int
    rounds: int
    roles: EpisodeRoles = ONLY_ROLE
    round: int = 0
    played: tuple[Episode, ...] = ()
    is_kept: tuple[bool, ...] = ()

    @property
    def missing(self) -> int:
        """Groups to play in the next round; 0 when the step is complete."""
        return 0 if self.round == self.rounds else self.groups - sum(self.is_kept) // self.size

    def after(self, episodes: Sequence[Episode]) -> Self:
        """The state after one more round, of which these are all the episodes."""
        kept_E = np.ones(len(episodes), bool)
        if self.round + 1 < self.rounds:
            group_E = ids_of(episode.key.task for episode in episodes)
            kept_E = np.any([with_spread(return_E, group_E) for return_E in self.roles.returns(episodes)], axis=0)
        return replace(
            self,
            round=self.round + 1,
            played=(*self.played, *episodes),
            is_kept=(*self.is_kept, *kept_E.tolist()),
        )
