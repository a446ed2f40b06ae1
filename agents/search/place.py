"""Places of a search: the situations that a policy's replies lead to, as a tree whose root is the episode's start."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from manyturn.agents.engine.engine import Reply
from manyturn.agents.play.episode import Act, LimitReached
from manyturn.envs.hosting.handle.env_handle import Answer


@dataclass(frozen=True, slots=True)
class DrawnReply:
    """A reply as it was drawn.

    Attributes:
        act: what it means.
        reply: its tokens.
        prompt: its prompt.
    """

    act: Act
    reply: Reply
    prompt: list[int]

    @property
    def likelihood(self) -> float:
        """Mean log-probability of its tokens."""
        return sum(self.reply.logprobs) / len(self.reply.logprobs)


@dataclass(eq=False, slots=True)
class SearchPlace:
    """A situation of an episode that was reached by replies.

    Attributes:
        step: what the policy reads there; ``seen`` in front of which a line stands where the last reply was cut.
        seen: the environment's last answer.
        parent: the place before the last reply; None at the start.
        drawn: the last reply.
        turn: replies so far.
        limit: why the policy cannot reply here; None if it can.
        closed: the episode ends here.
        snapshot: of the seat; None where none was taken.
        value: in the units of the search's value; NaN before it is computed.
        children: places that replies from here have led to, in order.
        prompt: the next reply's prompt, where the search's value reads it.
        likelihoods: log-probabilities of the last reply's tokens as the search's value reads them, if it does.
        read_tokens: tokens that the search's value had a model read for this place.
    """

    step: Answer
    seen: Answer
    parent: "SearchPlace | None" = None
    drawn: DrawnReply | None = None
    turn: int = 0
    limit: LimitReached | None = None
    closed: bool = False
    snapshot: str | None = None
    value: float = float("nan")
    children: list["SearchPlace"] = field(default_factory=list)
    prompt: list[int] | None = None
    likelihoods: list[float] | None = None
    read_tokens: int = 0

    @property
    def path(self) -> list["SearchPlace"]:
        """The places from the start to here, without the start."""
        return list(self._upwards())[::-1]

    @property
    def acted(self) -> bool:
        """True if the environment was given an action; a reply that was cut gives none."""
        return self.drawn is not None and self.drawn.act.cut is None

    def _upwards(self) -> Iterator["SearchPlace"]:
        place = self
        while place.parent is not None:
            yield place
            place = place.parent

    @property
    def ended(self) -> bool:
        """True if no reply can follow."""
        return self.closed or self.limit is not None
