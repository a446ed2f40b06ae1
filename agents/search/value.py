"""Values of places: how good a situation is to which replies have led. Each is a file in ``values/``."""

import abc
from collections.abc import Sequence
from typing import Literal, NamedTuple

from manyturn.agents.engine.engine import Engine
from manyturn.agents.play.agent import Agent
from manyturn.agents.search.place import SearchPlace
from manyturn.envs.contract.options.registry import Named, Registry
from manyturn.envs.contract.tasks.env_facts import EnvFacts


class ValueContext(NamedTuple):
    """Inputs of a value when it is made.

    Attributes:
        agent: the policy that searches.
        word: the policy as it was named, such as a run's folder.
    """

    agent: Agent
    word: str


class PlaceValue(abc.ABC):
    """Base of the values: the more, the better a place.

    Attributes:
        most: a value that no place exceeds, so that a search may stop at it; None if there is none.
        reads_prompt: whether it reads ``place.prompt``, what the policy would read next.
        reads: whether it has a model read; ``place.read_tokens`` counts what.
        engines: those that it reads with besides the policy's, to be shut down when the policy has played.
    """

    most: float | None = None
    reads_prompt = False
    reads = False
    engines: Sequence[Engine] = ()

    def fault_in(self, facts: EnvFacts) -> str | None:
        """The reason for which an environment has no such value, with the fix; None if it is known."""
        return None

    @abc.abstractmethod
    async def of(self, place: SearchPlace) -> float:
        """The value of a place. Raises EnvError where it is unknown."""


class ProgressConfig(Named):
    """Share of the goal that is reached, as the environment's ``progress()`` says."""

    name: Literal["progress"] = "progress"


VALUES: Registry[PlaceValue] = Registry("value of a search", "manyturn.agents.search.values")
