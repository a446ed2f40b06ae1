"""The environment's own progress: the share of the goal that is reached at a place.

It is a part of what an environment says of itself, and not of what its policy may read. Where progress is 1 exactly at
the goal, a search by it also sees which paths succeed.
"""

from manyturn.agents.search.place import SearchPlace
from manyturn.agents.search.value import VALUES, PlaceValue, ProgressConfig, ValueContext
from manyturn.envs.contract.tasks.env_facts import EnvFacts
from manyturn.envs.hosting.handle.env_handle import EnvError

_FIX = "override progress(), or choose another --search.value, such as likelihood"


@VALUES.register(ProgressConfig)
class ProgressValue(PlaceValue):
    """Share of the goal that is reached, as the environment's ``progress()`` says."""

    most = 1.0

    def __init__(self, context: ValueContext, config: ProgressConfig):
        pass

    def fault_in(self, facts: EnvFacts) -> str | None:
        return None if facts.has_progress else f"--search.value progress is unknown in {facts.name}: {_FIX}"

    async def of(self, place: SearchPlace) -> float:
        if place.seen.progress is None:
            raise EnvError(f"--search.value progress is unknown at turn {place.turn}: {_FIX}")
        return place.seen.progress
