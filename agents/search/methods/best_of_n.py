"""Best of n: whole episodes, drawn one after the other from the start, and the one of most value is played.

Source: Cobbe et al. 2021, "Training Verifiers to Solve Math Word Problems", arXiv 2110.14168, section 4.2, where a
verifier chooses among samples.

Differences: an episode has many turns, n may be what the tokens allow, and the verifier is any value of a place.
"""

from typing import Literal

from pydantic import Field

from manyturn.agents.search.explorer import Explorer
from manyturn.agents.search.method import SEARCHES, SearchConfig, SearchMethod, best
from manyturn.agents.search.place import SearchPlace


class BestOfNConfig(SearchConfig):
    name: Literal["best_of_n"] = "best_of_n"
    n: int | None = Field(default=None, ge=1)
    """Episodes at most; unset: as many as the tokens allow."""


@SEARCHES.register(BestOfNConfig)
class BestOfN(SearchMethod):
    """Draw whole episodes, and play the one that ends with most value."""

    def __init__(self, config: BestOfNConfig):
        self._most = config.n

    async def run(self, explorer: Explorer) -> SearchPlace:
        ends = list[SearchPlace]()
        while explorer.has_tokens and not explorer.is_solved and (self._most is None or len(ends) < self._most):
            places = await explorer.finish(explorer.root)
            ends += places[-1:]
            if not places:
                break
        return best([end for end in ends if end.ended] or ends or [explorer.root])
