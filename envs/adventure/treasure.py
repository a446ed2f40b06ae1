"""The treasure hunt: find a thing in a house of rooms, doors and containers, and bring it where it belongs."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from manyturn.envs.adventure.adventure_env import AdventureEnv
from manyturn.envs.adventure.exploration_expert import explore, fetch, use
from manyturn.envs.adventure.house import CARRIED, House
from manyturn.envs.adventure.quest import Step, holds, milestones
from manyturn.envs.adventure.treasure_tasks import (
    LEVELS,
    TreasureLevel,
    TreasureTasks,
    check_level,
    is_of_unseen,
    quest_of,
    varied_hunt,
)
from manyturn.envs.adventure.world import World
from manyturn.envs.contract.stable_random import Draws
from manyturn.envs.contract.tasks.task import Direction, Task


class Treasure(AdventureEnv[World]):
    """Find a treasure in a house, and bring it where it belongs.

    Task:
        Take a thing, or take it and put it on or into a piece of furniture that the first text names. Doors and
        containers may be closed or locked; the key of a lock has its colour. In the manner of TextWorld's custom games,
        treasure hunts and coin collector (Côté et al. 2018, arXiv 1806.11532), with rules, sentences and tasks of its
        own: scores are not comparable with TextWorld's.
    Observation:
        On entering a room, its furniture, what lies there, and its exits; otherwise what a command has done.
        ``progress`` is the share of the milestones reached: rooms to see, locks and lids to open, things to take and
        put on the way that the task was made from.
    Actions:
        ``go``, ``open``, ``close``, ``unlock``, ``lock``, ``take``, ``drop``, ``put``, ``insert``, ``look`` and
        ``inventory``. Anything else is invalid.
    Reward:
        1 when the goal is reached. ``rewards="turns"`` adds ``visit``, ``unlock``, ``open`` and ``take`` for the
        milestones, each once, in all less than 1. They do not preserve the best policy: a detour to one is paid.
    End:
        Success when the goal is reached. An episode cannot fail; it is truncated at ``max_turns``.
    Splits:
        train, validation and test share no task. Plans of rooms in ``test_unseen``, and pairs of treasure and target,
        occur in no other split.
    Expert:
        Takes every key that it sees, opens what is near, goes to the nearest new room, and uses only what it was shown.
    Floors:
        ``manyturn envs manyturn/Treasure-v0`` measures expert and random policy on every level.

    Args:
        split: train, validation, test or test_unseen.
        difficulty: ``w2-o3-q4`` (2 rooms, 3 objects, a quest of 4 commands; default), ``w4-o6-q8``, ``w6-o9-q12``, or
            ``coin``: 12 rooms without doors, and a coin that is 6 rooms away.
        rooms: overrides the level's number of rooms, from 1 to 12.
        objects: overrides how many things can be carried, keys and treasure among them, from 1 to 20.
        quest: overrides the number of commands of the quest.
        rewards: see ``AdventureEnv``.
        max_turns: default by difficulty, 12 to 36; for other sizes three for each command of the quest and two for
            each room.
    """

    instructions = (
        "You are in a house and must find a thing. Each turn, answer with exactly one command.\n\n"
        "Commands:\n  look\n  inventory\n  go DIRECTION\n  open DOOR or CONTAINER\n  close DOOR or CONTAINER\n"
        "  unlock DOOR or CONTAINER with KEY\n  lock DOOR or CONTAINER with KEY\n  take THING\n"
        "  take THING from FURNITURE\n  drop THING\n  put THING on FURNITURE\n  insert THING into CONTAINER\n\n"
        "Directions are north, east, south and west. A locked door or container needs the key of its colour, and must "
        "be opened after it is unlocked. A closed container does not show what it holds. The first text ends with your "
        "task."
    )
    harmless = (*AdventureEnv.harmless, "rooms", "objects", "quest")
    levels: Mapping[str, TreasureLevel] = LEVELS
    level: TreasureLevel
    parts = ("visit", "unlock", "open", "take")

    def __init__(
        self,
        split: str = "train",
        difficulty: str | None = None,
        rooms: int | None = None,
        objects: int | None = None,
        quest: int | None = None,
        rewards: str = "outcome",
        max_turns: int | None = None,
    ):
        super().__init__(split, difficulty, rewards, max_turns)
        sizes = {"rooms": rooms, "objects": objects, "quest": quest}
        changes = {name: size for name, size in sizes.items() if size is not None}
        name = self.difficulty or ""
        if changes:
            level = replace(self.level, **changes)
            self.level = replace(level, turns=3 * level.quest + 2 * level.rooms)
            name = check_level(self.level)
            if max_turns is None:
                self.max_turns = self.level.turns
        self._tasks = {split: TreasureTasks(split, name, self.level) for split in self.splits}

    def tasks(self, split: str) -> Sequence[Task]:
        return self._tasks[split]

    def vary(self, task: Task, direction: Direction, rng: np.random.Generator) -> Task | None:
        """Another hunt with a quest of one command more or less, in a room more or less where need be."""
        return varied_hunt(task, direction, Draws("varied treasure", task.content, int(rng.integers(2**62))))

    def split_rule(self, task: Task) -> str:
        return "test_unseen" if is_of_unseen(task.params) else super().split_rule(task)

    def begin(self, task: Task, rng: np.random.Generator) -> str:
        params = task.params
        house, steps, goal = _problem(
            *(params[name] for name in ("rooms", "ways", "furniture", "things", "start", "goal"))
        )
        self.start(World(house), steps)
        self._target = -1 if goal[0] == "take" else len(house.rooms) + int(goal[2])
        return f"{self.world.describe()} {_sentence(house, self._target)}"

    def holds(self, milestone: Step) -> bool:
        return self.world.places[0] == self._target if milestone.part == "put" else holds(self.world, milestone)

    def has_failed(self) -> bool:
        return False

    def expert(self) -> str:
        """The next command of an expert that searches and uses only what the agent was shown."""
        world, command = self.world, None
        if world.places[0] != CARRIED:
            command = fetch(world, 0)
        elif world.visited >> world.house.room_of(self._target) & 1:
            command = use(world, self._target, self.milestones[-1].command)
        return command or explore(world) or "look"


def _sentence(house: House, target: int) -> str:
    """The task in words."""
    if target < 0:
        return f"Your task: take the {house.things[0]}."
    word = "on" if house.lid_of(target) < 0 else "into"
    return f"Your task: put the {house.things[0]} {word} the {house.furniture[target - len(house.rooms)]}."


@lru_cache(maxsize=256)
def _problem(
    rooms: str, ways: str, furniture: str, things: str, start: int, goal: str
) -> tuple[House, list[Step], list[str]]:
    """House, milestones and goal, shared by the episodes of a task."""
    house = House({"rooms": rooms, "ways": ways, "furniture": furniture, "things": things, "start": start})
    return house, milestones(quest_of(house, goal).steps, start), goal.split()
