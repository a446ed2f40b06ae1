"""Base of treasure hunts and cooking: a world of rooms, milestones on the way to a goal, and their rewards."""

import abc
import json
from collections.abc import Hashable, Sequence
from typing import ClassVar, Generic, TypeVar

from manyturn.envs.adventure.quest import Step
from manyturn.envs.adventure.world import World
from manyturn.envs.contract.env.text_env import TextEnv
from manyturn.envs.contract.env.turn import Turn
from manyturn.envs.contract.tasks.task import SPLITS

REWARDS = ("outcome", "turns")
W = TypeVar("W", bound=World)


class AdventureEnv(TextEnv, Generic[W]):
    """An episode in a house. ``begin`` of a subclass sets ``world`` and ``milestones``.

    Args:
        split: train, validation, test or test_unseen.
        difficulty: a name of ``levels``; default: the first.
        rewards: ``outcome`` (sparse), or ``turns`` (dense), which pays each milestone but the last when it is first
            reached.
        max_turns: overrides the level's limit.

    Attributes:
        world: the state of the episode.
        milestones: what the shortest known way brings about, in its order; the last is the goal.
    """

    splits = (*SPLITS, "test_unseen")
    parts: ClassVar[tuple[str, ...]]
    """Names of the parts that ``rewards="turns"`` adds: kinds of milestones."""
    world: W
    milestones: Sequence[Step]
    harmless = (*TextEnv.harmless, "rewards")

    def __init__(
        self,
        split: str = "train",
        difficulty: str | None = None,
        rewards: str = "outcome",
        max_turns: int | None = None,
    ):
        if rewards not in REWARDS:
            raise ValueError(f"no rewards {rewards!r}: choose {' or '.join(REWARDS)}")
        super().__init__(split, max_turns, difficulty)
        self._pays_turns = rewards == "turns"
        self.part_names = self.parts if self._pays_turns else ()
        self._reached = 0  # mask of milestones

    @abc.abstractmethod
    def holds(self, milestone: Step) -> bool:
        """True if a milestone is reached in the present state."""

    @abc.abstractmethod
    def has_failed(self) -> bool:
        """True if the goal cannot be reached any more."""

    def respond(self, action: str) -> Turn:
        text, understood = self.world.act(action)
        if not understood:
            return self.invalid(text)
        parts = self._parts()
        if self._reached >> len(self.milestones) - 1:
            return self.succeed(f"{text} Your task is done.", **parts)
        return (
            self.fail(f"{text} Your task cannot be done any more.") if self.has_failed() else self.go_on(text, **parts)
        )

    def admissible(self) -> list[str]:
        return self.world.commands()[1].copy()

    def anchor(self) -> Hashable:
        return (self.task.id, self.world.key(), self.world.memory())

    def progress(self) -> float:
        return self._reached.bit_count() / len(self.milestones)

    def save(self) -> bytes:
        return json.dumps([self._reached, self.world.save().decode()]).encode()

    def load(self, data: bytes) -> None:
        self._reached, world = json.loads(data)
        self.world.load(world.encode())

    def start(self, world: W, milestones: Sequence[Step]) -> None:
        """Begin in a world."""
        self.world, self.milestones, self._reached = world, milestones, 0

    def _parts(self) -> dict[str, float]:
        """Note milestones that have been reached; the parts that pay for those new ones which are not the goal."""
        parts: dict[str, float] = {}
        for number, milestone in enumerate(self.milestones):
            if not self._reached >> number & 1 and self.holds(milestone):
                self._reached |= 1 << number
                if self._pays_turns and number < len(self.milestones) - 1:
                    parts[milestone.part] = parts.get(milestone.part, 0.0) + 1 / len(self.milestones)
        return parts
