"""The true outcome of a path that has ended: a bound for what any choice among the same paths can reach.

It is what is to be measured, so a success rate with it is no result of a policy: it says how often at least one path
of a search succeeds, as pass@k does for episodes.
"""

from typing import Literal

from manyturn.agents.search.place import SearchPlace
from manyturn.agents.search.value import VALUES, PlaceValue, ValueContext
from manyturn.envs.contract.options.registry import Named


class OracleConfig(Named):
    """The environment's own verdict that the goal was reached, which no policy sees: an upper bound."""

    name: Literal["oracle"] = "oracle"


@VALUES.register(OracleConfig)
class OracleValue(PlaceValue):
    """The environment's own verdict that the goal was reached, which no policy sees: an upper bound."""

    most = 1.0

    def __init__(self, context: ValueContext, config: OracleConfig):
        pass

    async def of(self, place: SearchPlace) -> float:
        return float(bool(place.closed and place.seen.success))
