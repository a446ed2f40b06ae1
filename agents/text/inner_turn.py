"""Inner turns: replies of the policy that are no action. Each kind is a file in ``inner_turns/``.

An inner turn is asked for before an action. It is recorded and learnt from as any reply, earns nothing, does not reach
the environment and is not counted by a limit of turns.
"""

from typing import Annotated, Any, ClassVar, NamedTuple

from pydantic import Field

from manyturn.envs.contract.options.registry import Named, Registry
from manyturn.envs.contract.tasks.env_facts import EnvFacts


class InnerRequest(NamedTuple):
    """The order of one inner turn.

    Attributes:
        kind: what the turn is, such as "plan"; by this name tables and reports show it.
        text: read by the policy, below the observation or instead of one.
    """

    kind: str
    text: str


class InnerTurns(NamedTuple):
    """The inner turns before an action.

    Attributes:
        requests: one for each, in order.
        action: text that the policy reads after them, in place of an observation.
    """

    requests: tuple[InnerRequest, ...]
    action: str


class InnerConfig(Named):
    """Base of the options of a kind. A subclass narrows ``name`` to a Literal of one string."""

    kinds: ClassVar[tuple[str, ...]] = ()
    """Kinds of the turns that it makes, in order."""
    tokens: int = Field(default=64, ge=1)
    """Most tokens of an inner turn."""
    every: int = Field(default=1, ge=1)
    """Inner turns come before the first action of an episode, and then before each action of this number."""
    act: Annotated[str, Field(min_length=1)] = "Now act."
    """Text that asks for the action after them."""

    def refuse(self, run: Any, env: EnvFacts | None) -> str | None:
        if run.agent.inner_tokens + run.sampling.max_tokens < run.agent.max_context:
            return None
        return (
            f"agent.inner.tokens = {self.tokens} and sampling.max_tokens = {run.sampling.max_tokens} leave no room for "
            f"a prompt in agent.max_context = {run.agent.max_context}: lower them, or raise agent.max_context"
        )


INNER: Registry[InnerTurns] = Registry("inner turn", "manyturn.agents.text.inner_turns")
"""The inner turns that come with manyturn, one file each."""
