"""Beam search over turns: at each turn several replies from each of the best places, of which the best go on.

Source: the breadth-first search of Yao et al. 2023, "Tree of Thoughts", arXiv 2305.10601, algorithm 1, with sampled
replies and a value.

Differences: places at which the same situation was reached count once, and paths that have ended stay among the
candidates.
"""

from typing import Literal

from pydantic import Field

from manyturn.agents.search.explorer import Explorer
from manyturn.agents.search.method import SEARCHES, SearchConfig, SearchMethod, best
from manyturn.agents.search.place import SearchPlace


class BeamConfig(SearchConfig):
    name: Literal["beam"] = "beam"
    beam: int = Field(default=2, ge=1)
    """Places that go on after each turn."""
    width: int = Field(default=3, ge=1)
    """Replies that are drawn at each of them."""


@SEARCHES.register(BeamConfig)
class BeamSearch(SearchMethod):
    """Go on from the best few places after each turn."""

    def __init__(self, config: BeamConfig):
        self._beam, self._width = config.beam, config.width

    async def run(self, explorer: Explorer) -> SearchPlace:
        places, ends, reached = [explorer.root], list[SearchPlace](), [explorer.root]
        while places and not explorer.is_solved and explorer.has_tokens:
            new: dict[str, SearchPlace] = {}
            for place in places:
                for _ in range(self._width):
                    if place.limit is not None or explorer.is_solved or not explorer.has_tokens:
                        break
                    after = await explorer.draw(place)
                    if after is not place:
                        new.setdefault(after.seen.anchor, after)
            reached = list(new.values()) or reached
            ends += [place for place in reached if place.ended and place in new.values()]
            open_places = [place for place in new.values() if not place.ended]
            places = sorted(open_places, key=lambda place: -place.value)[: self._beam]
        return best([*ends, *places] or reached)
