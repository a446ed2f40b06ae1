"""Kinds of tasks: text, ordered sub-goals with weights, the objects to focus on, and what makes a goal impossible."""

import abc

from manyturn.envs.adventure.object_names import indefinite
from manyturn.envs.laboratory.layout import CARRIED, GONE, Plan
from manyturn.envs.laboratory.object_types import ANIMALS, CROPS, LIVES, category_of
from manyturn.envs.laboratory.substances import AIMS, PRODUCTS, SUBSTANCES, suits
from manyturn.envs.laboratory.world import World

_COUNTS = {3: "three", 4: "four"}


class Goal(abc.ABC):
    """The goal of a task.

    Args:
        plan: of the laboratory; ``goal`` of it has the details, joined by ``/``.

    Attributes:
        text: the task in words.
        subgoals: names and weights, which sum to 1, in their order; the last one reached is success.
    """

    subgoals: tuple[tuple[str, float], ...]
    text: str

    def __init__(self, plan: Plan):
        self.plan = plan
        self.words = plan.goal.split("/")

    @abc.abstractmethod
    def accepts(self, world: World, thing: int) -> bool:
        """True if focusing on a thing now is right."""

    @abc.abstractmethod
    def holds(self, world: World, name: str) -> bool:
        """True if a sub-goal is reached in the present state."""

    def has_failed(self, world: World) -> bool:
        """True if the goal cannot be reached any more."""
        return False


class Change(Goal):
    """Melt, boil or freeze a substance."""

    subgoals = (("focus", 0.1), ("place", 0.2), ("switch", 0.2), ("state", 0.5))

    def __init__(self, plan: Plan):
        super().__init__(plan)
        name, self.aim = self.words
        self.target = plan.index[name]
        before, self.after = AIMS[self.aim]
        self.text = f"Your task is to {self.aim} the {SUBSTANCES[name].forms[before]}. First focus on it."

    def accepts(self, world: World, thing: int) -> bool:
        return thing == self.target

    def holds(self, world: World, name: str) -> bool:
        if name == "focus":
            return self.target in world.focused
        reached = world.state(self.target) == self.after
        vessel = world.holder(self.target)
        device = world.holder(vessel) if vessel >= 0 else -1
        if name == "state" or reached or device < 0 or self.plan.sorts[device] != "device":
            return reached
        suited = suits(self.aim, self.words[0], self.plan.degrees(device))
        return suited and (name == "place" or bool(world.on >> device & 1))

    def has_failed(self, world: World) -> bool:
        return self.target in world.blends or world.places[self.target] == GONE


class Find(Goal):
    """Find a thing of a category and put it into a box."""

    subgoals = (("focus", 0.5), ("take", 0.2), ("place", 0.3))

    def __init__(self, plan: Plan):
        super().__init__(plan)
        self.category, box = self.words
        self.box = plan.index[box]
        room = plan.rooms[plan.places[self.box]]
        self.text = (
            f"Your task is to find {indefinite(self.category)}. Focus on it, then put it in the {box}, which is in the "
            f"{room}."
        )

    def accepts(self, world: World, thing: int) -> bool:
        return not world.focused and self.matches(world, thing)

    def matches(self, world: World, thing: int) -> bool:
        """True if a thing is of the category."""
        return self.plan.sorts[thing] == "thing" and category_of(self.plan.names[thing]) == self.category

    def holds(self, world: World, name: str) -> bool:
        if not world.focused or name == "focus":
            return bool(world.focused)
        place = world.places[world.focused[0]]
        return place == self.plan.inside(self.box) or (name == "take" and place == CARRIED)


class Lifespan(Goal):
    """Focus on animals in the order of their life spans."""

    def __init__(self, plan: Plan):
        super().__init__(plan)
        animals = [thing for thing, name in enumerate(plan.names) if name in ANIMALS]
        self.order = sorted(animals, key=lambda thing: ANIMALS[plan.names[thing]])
        self.subgoals = tuple((f"focus{number + 1}", 1 / len(animals)) for number in range(len(animals)))
        self.text = (
            f"There are {_COUNTS[len(animals)]} animals in the laboratory. Your task is to focus on each of them, in "
            "the order of their life spans: first on the one with the shortest life, last on the one with the longest."
        )

    def accepts(self, world: World, thing: int) -> bool:
        return len(world.focused) < len(self.order) and thing == self.order[len(world.focused)]

    def holds(self, world: World, name: str) -> bool:
        return len(world.focused) >= int(name.removeprefix("focus"))


class Mix(Goal):
    """Make a product from its ingredients, which a recipe names."""

    subgoals = (("read", 0.2), ("pour", 0.3), ("mix", 0.4), ("focus", 0.1))

    def __init__(self, plan: Plan):
        super().__init__(plan)
        self.product = plan.goal
        self.note = plan.of_sort("note")[0]
        self.ingredients = tuple(plan.index[name] for name in PRODUCTS[self.product])
        self.text = (
            f"Your task is to make {self.product}. The {plan.names[self.note]} in this laboratory names the "
            f"ingredients. When you have made the {self.product}, focus on it."
        )

    def made(self, world: World) -> int:
        """The product; -1 before it is made."""
        return next((t for t, names in world.blends.items() if names == PRODUCTS[self.product]), -1)

    def accepts(self, world: World, thing: int) -> bool:
        return thing == self.made(world)

    def holds(self, world: World, name: str) -> bool:
        match name:
            case "read":
                return bool(world.looked >> self.note & 1)
            case "pour":
                return len({world.holder(thing) for thing in self.ingredients}) == 1 or self.made(world) >= 0
            case "mix":
                return self.made(world) >= 0
            case _:
                return bool(world.focused)

    def has_failed(self, world: World) -> bool:
        needed = set(PRODUCTS[self.product])
        return any(
            not needed.issuperset(world.ingredients(other))
            for thing in self.ingredients
            if world.holder(thing) >= 0
            for other in world.contents(world.holder(thing))
        )


class Grow(Goal):
    """Grow a plant from a seed, or hatch and raise an animal from an egg."""

    def __init__(self, plan: Plan):
        super().__init__(plan)
        (name,) = self.words
        self.target, self.is_crop = plan.index[name], name in CROPS
        stages = LIVES[name].stages
        if self.is_crop:
            self.home = plan.of_sort("pot")[0]
            self.water = plan.index["water"]
            steps = f"Put it in the {plan.names[self.home]} and pour water into the pot."
        else:
            self.home = plan.of_sort("device")[0]
            steps = "It needs an incubator that is on."
        self.subgoals = (("place", 0.3), ("water" if self.is_crop else "switch", 0.3), ("grow", 0.3), ("focus", 0.1))
        self.text = (
            f"Your task is to grow {indefinite(stages[-1])} from the {stages[0]}. {steps} When the {stages[-1]} is "
            "grown, focus on it, not earlier."
        )

    def accepts(self, world: World, thing: int) -> bool:
        return thing == self.target and world.is_grown(thing)

    def holds(self, world: World, name: str) -> bool:
        if world.is_grown(self.target) and name != "focus":
            return True
        match name:
            case "place":
                return world.holder(self.target) == self.home
            case "water":
                return bool(world.amounts[self.home])
            case "switch":
                return bool(world.on >> self.home & 1)
            case "grow":
                return False
            case _:
                return bool(world.focused)

    def has_failed(self, world: World) -> bool:
        if not self.is_crop or world.is_grown(self.target):
            return False
        vessel = world.holder(self.water)
        dry = vessel < 0 or self.water in world.blends or len(world.contents(vessel)) > 1
        lacking = LIVES[self.words[0]].ages[-1] - world.amounts[self.target] - world.amounts[self.home]
        return dry and lacking > 0
