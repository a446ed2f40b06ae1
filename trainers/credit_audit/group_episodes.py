"""Episodes of a played group, their situations, and continuations of these, as plain values."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from manyturn.trainers.credit_audit.rewindable_env import Situation


@dataclass(frozen=True)
class GroupTurn:
    """One turn of an episode.

    Attributes:
        start: number of the situation before it, among the starts of its task.
        after: number of what continuations go on from after it: of the next situation, or, where chance had a part in
            what the turn brought, of this situation with the action forced; ``END`` where the episode is over.
        forced: whether returns after it include its own reward.
        counted: as much of its reward as true effects are of.
        tokens: of the reply.
    """

    observation: str
    action: str
    parts: Mapping[str, float]
    format_valid: bool
    understood: bool
    anchor: str
    anchor_text: str | None
    progress: float | None
    start: int
    after: int
    counted: float
    forced: bool = False
    tokens: int = 1

    @property
    def reward(self) -> float:
        return float(sum(self.parts.values()))


@dataclass(frozen=True)
class GroupEpisode:
    """One episode of a group.

    Attributes:
        names_answer: whether the environment named the task's true answer.
    """

    turns: Sequence[GroupTurn]
    truncated: bool
    success: bool | None
    last: str
    names_answer: bool = False


@dataclass
class Start:
    """A situation, and what continuations from it brought.

    Attributes:
        returns: of continuation m the sum of rewards from here on.
        firsts: its first action, by the task's list of actions.
        steps: of all of them.
        critic: returns of other continuations, which a critic's value is the mean of; all rewards count.
    """

    situation: Situation
    returns: list[float] = field(default_factory=list)
    firsts: list[int] = field(default_factory=list)
    steps: int = 0
    critic: list[float] = field(default_factory=list)


@dataclass
class PlayedTask:
    """A task's group, and the continuations of its situations.

    Attributes:
        actions: those that continuations began with, each once.
        steps: taken in all, those of the critic included.
    """

    task: str
    episodes: Sequence[GroupEpisode]
    starts: list[Start]
    actions: list[str] = field(default_factory=list)
    steps: int = 0

    @property
    def turns(self) -> list[GroupTurn]:
        """All turns, episode after episode."""
        return [turn for episode in self.episodes for turn in episode.turns]

    def number_of(self, action: str) -> int:
        """The number of a first action."""
        if action not in self._numbers:
            self._numbers[action] = len(self.actions)
            self.actions.append(action)
        return self._numbers[action]

    def __post_init__(self) -> None:
        self._numbers = {action: number for number, action in enumerate(self.actions)}

    def plain(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)

    @classmethod
    def of_plain(cls, values: Mapping[str, Any]) -> Self:
        episodes = [
            GroupEpisode(**{**one, "turns": [GroupTurn(**turn) for turn in one["turns"]]}) for one in values["episodes"]
        ]
        starts = [Start(**{**one, "situation": Situation(*one["situation"])}) for one in values["starts"]]
        return cls(values["task"], episodes, starts, list(values["actions"]), values["steps"])
