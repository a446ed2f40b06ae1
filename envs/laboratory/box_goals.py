"""Tasks that end with the right one of two boxes: an experiment of the agent decides which."""

import abc

from manyturn.envs.laboratory.goals import Goal
from manyturn.envs.laboratory.layout import CARRIED, GONE, Plan
from manyturn.envs.laboratory.world import World


class Sorting(Goal):
    """Base of goals that end with the right one of two boxes."""

    def boxes(self, yes: str, no: str) -> None:
        """Name the boxes of the two answers."""
        self.yes, self.no = self.plan.index[yes], self.plan.index[no]
        self.where = self.plan.rooms[self.plan.places[self.yes]]

    @abc.abstractmethod
    def moved(self, world: World) -> int:
        """The thing that belongs into a box."""

    @abc.abstractmethod
    def answer(self, world: World) -> bool | None:
        """The answer that the agent has seen; None before that."""

    def box(self, world: World) -> int:
        """The box that the answer names; -1 before there is one."""
        answer = self.answer(world)
        return -1 if answer is None else self.yes if answer else self.no

    def has_failed(self, world: World) -> bool:
        holder = world.holder(self.moved(world))
        return holder in (self.yes, self.no) and holder != self.box(world)


class Conductivity(Sorting):
    """Find out if a thing conducts electricity and put it into the box that says so."""

    subgoals = (("focus", 0.1), ("test", 0.5), ("place", 0.4))

    def __init__(self, plan: Plan):
        super().__init__(plan)
        name, yes, no = self.words
        self.target = plan.index[name]
        self.boxes(yes, no)
        self.text = (
            f"Your task is to find out if the {name} conducts electricity. Focus on it. Then connect the battery, the "
            f"light bulb and the {name} in a circle. If the bulb lights up, put the {name} in the {yes}, otherwise in "
            f"the {no}. Both boxes are in the {self.where}."
        )

    def moved(self, world: World) -> int:
        return self.target

    def answer(self, world: World) -> bool | None:
        return bool(self.plan.values[self.target]) if world.tested >> self.target & 1 else None

    def accepts(self, world: World, thing: int) -> bool:
        return thing == self.target

    def holds(self, world: World, name: str) -> bool:
        match name:
            case "focus":
                return self.target in world.focused
            case "test":
                return bool(world.tested >> self.target & 1)
            case _:
                return world.holder(self.target) == self.box(world) >= 0


class Thermometer(Sorting):
    """Measure a temperature and put the vessel into the box that says if it is above a limit."""

    subgoals = (("focus", 0.1), ("take", 0.1), ("measure", 0.4), ("place", 0.4))

    def __init__(self, plan: Plan):
        super().__init__(plan)
        name, limit, yes, no = self.words
        self.target, self.limit = plan.index[name], int(limit)
        self.meter = plan.of_sort("thermometer")[0]
        self.boxes(yes, no)
        self.text = (
            f"Your task is to measure the temperature of the {name}. Focus on it first. If your last measurement is "
            f"above {limit} degrees, put its vessel in the {yes}, otherwise in the {no}. Both boxes are in the "
            f"{self.where}."
        )

    def moved(self, world: World) -> int:
        return max(world.holder(self.target), 0)

    def answer(self, world: World) -> bool | None:
        return world.readings[self.target] > self.limit if self.target in world.readings else None

    def accepts(self, world: World, thing: int) -> bool:
        return thing == self.target

    def holds(self, world: World, name: str) -> bool:
        match name:
            case "focus":
                return self.target in world.focused
            case "take":
                return world.places[self.meter] == CARRIED or self.target in world.readings
            case "measure":
                return self.target in world.readings
            case _:
                return world.holder(self.moved(world)) == self.box(world) >= 0

    def has_failed(self, world: World) -> bool:
        return self.target in world.blends or world.places[self.target] == GONE or super().has_failed(world)
