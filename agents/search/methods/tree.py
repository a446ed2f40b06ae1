"""Tree search: UCT over turns, in which each iteration draws one path to its end from a place that it selects.

Source: Kocsis and Szepesvari 2006, "Bandit based Monte-Carlo Planning", equation 1, for the selection; the search
over an agent's turns with the policy's samples as moves is that of Zhou et al. 2023, "Language Agent Tree Search",
arXiv 2310.04406, section 4.

Differences: no reflections, replies that lead to the same situation are one move, and the value of a path is the
highest on it.
"""

import math
from typing import Literal

from pydantic import Field

from manyturn.agents.search.explorer import Explorer
from manyturn.agents.search.method import SEARCHES, SearchConfig, SearchMethod, best
from manyturn.agents.search.place import SearchPlace


class TreeConfig(SearchConfig):
    name: Literal["tree"] = "tree"
    width: int = Field(default=3, ge=1)
    """Replies that are drawn at a place before the search goes on from the best of them."""
    explore: float = Field(default=0.5, ge=0)
    """Weight of places that were visited less than others; 0 always goes on from the best."""
    rollout: bool = True
    """Draw each path to its end; otherwise one reply at a time, for values that judge places well."""


class _Visits:
    """Counts of a place: how often it was visited and tried, and the sum of the values of paths through it.

    Attributes:
        above: the place before it in the tree.
        moves: anchor -> the place that stands for the situation which a reply leads to.
    """

    def __init__(self, above: SearchPlace | None):
        self.visits, self.tries, self.total, self.above = 0, 0, 0.0, above
        self.moves: dict[str, SearchPlace] = {}


@SEARCHES.register(TreeConfig)
class TreeSearch(SearchMethod):
    """Select a place by value and visits, and draw a path from there."""

    def __init__(self, config: TreeConfig):
        self._config = config

    async def run(self, explorer: Explorer) -> SearchPlace:
        visits: dict[SearchPlace, _Visits] = {explorer.root: _Visits(None)}
        while explorer.has_tokens and not explorer.is_solved:
            place = self._selected(explorer.root, visits)
            if place is None:
                break
            visits[place].tries += 1
            if self._config.rollout:
                new = await explorer.finish(place)
            else:
                after = await explorer.draw(place)
                new = [] if after is place else [after]
            self._enter(place, new, visits)
        reached = [place for place in visits if place is not explorer.root]
        return best(reached or [explorer.root])

    def _enter(self, place: SearchPlace, new: list[SearchPlace], visits: dict[SearchPlace, _Visits]) -> None:
        """Add new places to the tree, and the highest value of their path to all places on it."""
        here: SearchPlace | None = place
        value = max([one.value for one in new], default=0.0 if place.turn == 0 else place.value)
        for number, after in enumerate(new):
            assert here is not None, "it is the place before"
            above, own = here, visits[here]
            own.tries += number > 0
            here = own.moves.setdefault(after.seen.anchor, after)
            if after.closed and not here.closed:  # the same situation, but at the last turn
                here = after
            if here not in visits:
                visits[here] = _Visits(above)
        while here is not None:
            visits[here].visits += 1
            visits[here].total += value
            here = visits[here].above

    def _selected(self, place: SearchPlace, visits: dict[SearchPlace, _Visits]) -> SearchPlace | None:
        """The place from which the next path is drawn; None if nothing is left to try."""
        if place.ended:
            return None
        own = visits[place]
        if own.tries < self._config.width:
            return place

        def score(move: SearchPlace) -> float:
            seen = visits[move]
            bonus = self._config.explore * math.sqrt(math.log(max(own.visits, 1)) / max(seen.visits, 1))
            return seen.total / max(seen.visits, 1) + bonus

        for move in sorted(own.moves.values(), key=score, reverse=True):
            if (chosen := self._selected(move, visits)) is not None:
                return chosen
        return None
