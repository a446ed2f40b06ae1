"""Protocol of a simulated user."""

import abc
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from manyturn.envs.contract.tasks.task import Task

NOTHING: Mapping[str, Any] = MappingProxyType({})


class UserError(RuntimeError):
    """The user could not answer. It is the environment's fault, never the agent's, and never a reward."""


class Heard(NamedTuple):
    """Reaction of a user to one text of the agent.

    Attributes:
        utterance: what the user says next; may be empty when it leaves.
        done: the user leaves; nothing more is said.
        parts: named rewards that this user gives of its own accord; environments that score by themselves ignore them.
        info: plain values for ``info``.
        calls: what the user's own tools shall do before it speaks, each the text of one call (``envs.tools.calls``),
            well or badly written. Nothing is said yet then: the environment answers with ``see``.
    """

    utterance: str
    done: bool = False
    parts: Mapping[str, float] = NOTHING
    info: Mapping[str, Any] = NOTHING
    calls: Sequence[str] = ()


class User(abc.ABC):
    """Somebody to talk to. One object plays one dialogue after another.

    Attributes:
        name: what tells users apart whose scores must not be mixed, such as ``agenda`` or ``model(qwen3-8b)``.
    """

    name: str

    @abc.abstractmethod
    def begin(self, task: Task, rng: np.random.Generator) -> str:
        """Forget the last dialogue and open one about ``task``: the first utterance, empty if the agent speaks first.

        All chance comes from ``rng``, also later in the dialogue. Raises UserError.
        """

    @abc.abstractmethod
    def hear(self, text: str, cue: Mapping[str, Any] = NOTHING) -> Heard:
        """Answer the agent. Raises UserError.

        Args:
            text: what the agent says to the user; it may be anything.
            cue: what the environment lets the user know of the world and of itself, as plain values, such as
                ``{"done": ["cancel"]}`` or ``{"mood": 35}``.
        """

    def see(self, results: Sequence[str]) -> Heard:
        """Go on after the calls that the user asked for; users without tools never do. Raises UserError.

        Args:
            results: what its tools answered, one text for each call.
        """
        raise UserError(f"the user {self.name} has asked for no calls, so there is nothing to see")

    @abc.abstractmethod
    def save(self) -> Any:
        """The state inside the dialogue as plain values; the state of ``rng`` is the environment's."""

    @abc.abstractmethod
    def load(self, state: Any) -> None:
        """Inverse of ``save``. ``begin`` has been called with the same task before."""
