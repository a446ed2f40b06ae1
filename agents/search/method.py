"""Methods of search: which replies are tried out, and which path is played. Each is a file in ``methods/``."""

import abc
from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import Field

from manyturn.agents.search.explorer import Explorer
from manyturn.agents.search.place import SearchPlace
from manyturn.agents.search.value import VALUES, ProgressConfig
from manyturn.envs.contract.options.registry import Named, Registry


class SearchConfig(Named):
    """Options that all methods have."""

    tokens: int = Field(ge=1)
    """Reply tokens of an episode at most, those of all tries and of the path that is played together."""
    value: Annotated[Any, VALUES.field] = ProgressConfig()
    """How good a place is: progress, likelihood, rerank, critic, judge, oracle, or a plugin's."""


class SearchMethod(abc.ABC):
    """Base of the methods."""

    @abc.abstractmethod
    async def run(self, explorer: Explorer) -> SearchPlace:
        """Try replies out until the tokens are spent, or a path has the most that can be had.

        Returns:
            The end of the path that is played.
        """


SEARCHES: Registry[SearchMethod] = Registry("search", "manyturn.agents.search.methods")


def best(places: Iterable[SearchPlace]) -> SearchPlace:
    """The place of most value; of equal ones one where the episode has ended, and of those the first."""
    return max(places, key=lambda place: (place.value, place.closed))
