"""Cooking: read a recipe, gather its ingredients in a house, cut and cook them, and eat the meal."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from manyturn.envs.adventure.adventure_env import AdventureEnv
from manyturn.envs.adventure.cooking_tasks import LEVELS, CookingLevel, CookingTasks, check_level
from manyturn.envs.adventure.cooking_world import (
    APPLIANCES,
    COOKBOOK,
    CUT_VERBS,
    HOME,
    KNIFE,
    MEAL,
    Ingredient,
    Kitchen,
)
from manyturn.envs.adventure.exploration_expert import explore, fetch, use
from manyturn.envs.adventure.house import CARRIED, House
from manyturn.envs.adventure.quest import Step
from manyturn.envs.contract.tasks.task import Task


class Cooking(AdventureEnv[Kitchen]):
    """Read a recipe, gather its ingredients, cut and cook them, and eat the meal.

    Task:
        A cookbook in the kitchen says which ingredients the meal needs and how each is cut and cooked. They lie in the
        rooms of a house, among food that is not needed. In the manner of TextWorld's cooking games (Côté et al. 2018,
        arXiv 1806.11532), with rules, sentences and tasks of its own: scores are not comparable with TextWorld's.
    Observation:
        On entering a room, its furniture, what lies there, and its exits; otherwise what a command has done.
        ``progress`` is the share of the milestones reached: recipe read, things taken, cut and cooked, meal prepared
        and eaten.
    Actions:
        Those of ``Treasure`` but for locks, and ``read cookbook``, ``chop``, ``slice`` and ``dice FOOD with knife``,
        ``cook FOOD with`` stove, oven or grill, ``prepare meal``, ``eat``. Anything else is invalid.
    Reward:
        1 when the meal is eaten. ``rewards="turns"`` adds ``read``, ``take``, ``cut``, ``cook`` and ``prepare`` for the
        milestones, each once, in all less than 1. They keep what was paid when the meal is spoilt afterwards.
    End:
        Success when the meal is eaten. Failure when an ingredient is eaten, or cut or cooked otherwise than the recipe
        says; what is cooked twice is burnt. Truncated at ``max_turns``.
    Splits:
        train, validation and test share no task. Plans of rooms in ``test_unseen``, and the ways in which its recipes
        prepare an ingredient, occur in no other split.
    Expert:
        Reads the cookbook first, then takes what it needs where it sees it, and searches for the rest. It uses only
        what it was shown.
    Floors:
        ``manyturn envs manyturn/Cooking-v0`` measures expert and random policy on every level.

    Args:
        split: train, validation, test or test_unseen.
        difficulty: ``easy`` (2 rooms, 1 ingredient; default), ``medium`` (4, 2) or ``hard`` (7, 3).
        rooms: overrides the level's number of rooms, from 1 to 12. A single room has no unseen plan.
        ingredients: overrides the level's number of ingredients, from 1 to 5; as much other food lies about.
        processing: overrides what the recipe asks for: none, cut, cook or both.
        rewards: see ``AdventureEnv``.
        max_turns: default by difficulty, 20, 40 and 70; for other sizes 5, 5 for each room and 8 for each ingredient.
    """

    instructions = (
        "You are in a house and must cook. Each turn, answer with exactly one command.\n\n"
        "Commands:\n  look\n  inventory\n  go DIRECTION\n  open DOOR or CONTAINER\n  close DOOR or CONTAINER\n"
        "  take THING\n  take THING from FURNITURE\n  drop THING\n  put THING on FURNITURE\n"
        "  insert THING into CONTAINER\n  read cookbook\n  chop FOOD with knife\n  slice FOOD with knife\n"
        "  dice FOOD with knife\n  cook FOOD with APPLIANCE\n  prepare meal\n  eat FOOD\n\n"
        "Directions are north, east, south and west. To cut food, carry it and the knife. To cook food, carry it to "
        "the appliance: a stove fries, an oven roasts, a grill grills. Do no more to an ingredient than the recipe "
        "says: a wrong cut spoils it, and so does cooking it twice. Carry all ingredients to the kitchen, prepare the "
        "meal there and eat it."
    )
    harmless = (*AdventureEnv.harmless, "rooms", "ingredients", "processing")
    levels: Mapping[str, CookingLevel] = LEVELS
    level: CookingLevel
    parts = ("read", "take", "cut", "cook", "prepare")

    def __init__(
        self,
        split: str = "train",
        difficulty: str | None = None,
        rooms: int | None = None,
        ingredients: int | None = None,
        processing: str | None = None,
        rewards: str = "outcome",
        max_turns: int | None = None,
    ):
        super().__init__(split, difficulty, rewards, max_turns)
        changes = {"rooms": rooms, "ingredients": ingredients, "processing": processing}
        changes = {name: value for name, value in changes.items() if value is not None}
        name = self.difficulty or ""
        if changes:
            level = replace(self.level, **changes)
            self.level = replace(level, turns=5 + 5 * level.rooms + 8 * level.ingredients)
            name = check_level(self.level)
            if max_turns is None:
                self.max_turns = self.level.turns
        self._tasks = {split: CookingTasks(split, name, self.level) for split in self.splits}

    def tasks(self, split: str) -> Sequence[Task]:
        return self._tasks[split]

    def begin(self, task: Task, rng: np.random.Generator) -> str:
        params = task.params
        house, recipe, appliances = _problem(*(params[name] for name in _PARAMS))
        self.start(Kitchen(house, recipe, appliances), _milestones(recipe))
        return (
            f"{self.world.describe()} Your task: read the cookbook in the kitchen, prepare the meal of its recipe, "
            "and eat it."
        )

    def holds(self, milestone: Step) -> bool:
        world, thing = self.world, milestone.subject
        match milestone.part:
            case "read":
                return world.has_read
            case "take" | "prepare":
                return world.places[thing] == CARRIED
            case "cut":
                return bool(world.cut[thing])
            case "cook":
                return bool(world.cooked[thing])
            case _:
                return world.has_eaten

    def has_failed(self) -> bool:
        return self.world.is_spoilt()

    def expert(self) -> str:
        """The next command of an expert that searches and uses only what the agent was shown."""
        world = self.world
        if not world.has_read:
            command = self._read()
        elif world.places[MEAL] == CARRIED:
            command = "eat meal"
        elif (command := fetch(world, MEAL)) is None:
            command = self._gather() if self._missing() else self._work()
        return command or explore(world) or "look"

    def _read(self) -> str | None:
        """The next command for reading the cookbook, if the agent has seen it."""
        place = self.world.places[COOKBOOK]
        if place == CARRIED:
            return "read cookbook"
        return use(self.world, place, "read cookbook") if self.world.sees(COOKBOOK) else None

    def _missing(self) -> list[int]:
        """Things that the recipe needs and the agent does not carry, those at hand first."""
        world = self.world
        needed = [line.thing for line in world.recipe]
        if any(line.cut and not world.cut[line.thing] for line in world.recipe):
            needed.append(KNIFE)
        missing = [thing for thing in needed if world.places[thing] != CARRIED]
        return sorted(missing, key=lambda thing: world.house.room_of(world.places[thing]) != world.room)

    def _gather(self) -> str | None:
        return next(filter(None, (fetch(self.world, thing) for thing in self._missing())), None)

    def _work(self) -> str | None:
        """The next command for cutting, cooking and preparing what is carried; None if an appliance is yet unseen."""
        world = self.world
        rooms: list[tuple[int, str]] = []
        for line in world.recipe:
            name = world.house.things[line.thing]
            if world.cut[line.thing] != line.cut:
                return f"{next(verb for verb, cut in CUT_VERBS.items() if cut == line.cut)} {name} with knife"
            if world.cooked[line.thing] != line.cooked:
                appliance = next(name for name, cooked in APPLIANCES.items() if cooked == line.cooked)
                rooms.append((world.appliances[appliance], f"cook {name} with {appliance}"))
        rooms.sort(key=lambda item: item[0] != world.room)
        for room, command in rooms:
            if world.visited >> room & 1:
                return use(world, room, command)
        return None if rooms else use(world, HOME, "prepare meal")


_PARAMS = ("rooms", "ways", "furniture", "things", "start", "recipe", "appliances")


@lru_cache(maxsize=256)
def _problem(
    rooms: str, ways: str, furniture: str, things: str, start: int, recipe: str, appliances: str
) -> tuple[House, tuple[Ingredient, ...], dict[str, int]]:
    """House, recipe and appliances, shared by the episodes of a task."""
    house = House({"rooms": rooms, "ways": ways, "furniture": furniture, "things": things, "start": start})
    lines = tuple(Ingredient(*map(int, line.split())) for line in recipe.split("|"))
    return house, lines, {name: int(room) for name, _, room in (part.partition(":") for part in appliances.split("|"))}


def _milestones(recipe: Sequence[Ingredient]) -> list[Step]:
    """Milestones of the meal, in the order in which the expert does it."""
    steps = [Step("read", COOKBOOK, ""), *(Step("take", line.thing, "") for line in recipe)]
    if any(line.cut for line in recipe):
        steps.append(Step("take", KNIFE, ""))
    steps += [Step("cut", line.thing, "") for line in recipe if line.cut]
    steps += [Step("cook", line.thing, "") for line in recipe if line.cooked]
    return [*steps, Step("prepare", MEAL, ""), Step("eat", MEAL, "")]
