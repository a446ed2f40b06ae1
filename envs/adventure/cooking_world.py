"""The world of cooking: a house with a kitchen, where food is cut, cooked, made into a meal and eaten."""

import json
from typing import NamedTuple

from manyturn.envs.adventure.house import CARRIED, GONE, House
from manyturn.envs.adventure.object_names import indefinite, listing
from manyturn.envs.adventure.world import Operation, World

MEAL, COOKBOOK, KNIFE = 0, 1, 2
"""Numbers of these things; food follows."""
FIRST_FOOD = 3
CUTS = ("", "chopped", "sliced", "diced")
CUT_VERBS = {"chop": 1, "slice": 2, "dice": 3}
COOKED = ("", "fried", "roasted", "grilled", "burnt")
BURNT = 4
APPLIANCES = {"stove": 1, "oven": 2, "grill": 3}
"""Appliance -> how it cooks, a number of ``COOKED``."""
HOME = 0
"""The kitchen's room."""


class Ingredient(NamedTuple):
    """A line of the recipe: a thing, and numbers of ``CUTS`` and ``COOKED``."""

    thing: int
    cut: int
    cooked: int


class Kitchen(World):
    """A house whose first room is the kitchen.

    Attributes:
        recipe: the ingredients.
        appliances: name -> room.
        cut, cooked: for each thing a number of ``CUTS`` and of ``COOKED``.
        has_read: True if the agent has read the cookbook.
        has_eaten: True if it has eaten the meal.
    """

    def __init__(self, house: House, recipe: tuple[Ingredient, ...], appliances: dict[str, int]):
        self.recipe, self.appliances = recipe, appliances
        self.cut = [0] * len(house.things)
        self.cooked = [0] * len(house.things)
        self.has_read = self.has_eaten = False
        super().__init__(house)

    def key(self) -> tuple[int, ...]:
        return (*super().key(), *self.cut, *self.cooked)

    def memory(self) -> tuple[int, ...]:
        return (*super().memory(), self.has_read)

    def is_ready(self, line: Ingredient) -> bool:
        """True if an ingredient is cut and cooked as the recipe says."""
        return self.cut[line.thing] == line.cut and self.cooked[line.thing] == line.cooked

    def is_spoilt(self) -> bool:
        """True if an ingredient was eaten, or cut or cooked otherwise than the recipe says."""
        if self.has_eaten or self.places[MEAL] != GONE:
            return False
        return any(
            self.places[thing] == GONE or self.cut[thing] not in (0, cut) or self.cooked[thing] not in (0, cooked)
            for thing, cut, cooked in self.recipe
        )

    def save(self) -> bytes:
        state = [self.cut, self.cooked, self.has_read, self.has_eaten, super().save().decode()]
        return json.dumps(state).encode()

    def load(self, data: bytes) -> None:
        self.cut, self.cooked, self.has_read, self.has_eaten, world = json.loads(data)
        super().load(world.encode())

    # ---- commands -------------------------------------------------------------------------------------------

    def offer(self, into: dict[str, Operation]) -> None:
        super().offer(into)
        if self.places[COOKBOOK] == CARRIED or self.places[COOKBOOK] in self.reachable():
            into["read cookbook"] = (Kitchen._read, 0, 0)
        here = [name for name, room in self.appliances.items() if room == self.room]
        for thing in range(FIRST_FOOD, len(self.house.things)):
            if self.places[thing] == CARRIED:
                self._offer_food(thing, here, into)
        if self.room == HOME and all(
            self.places[line.thing] == CARRIED and self.is_ready(line) for line in self.recipe
        ):
            into["prepare meal"] = (Kitchen._prepare, 0, 0)
        if self.places[MEAL] == CARRIED:
            into["eat meal"] = (Kitchen._eat, MEAL, 0)

    def _offer_food(self, thing: int, here: list[str], into: dict[str, Operation]) -> None:
        name = self.house.things[thing]
        into[f"eat {name}"] = (Kitchen._eat, thing, 0)
        if self.places[KNIFE] == CARRIED and not self.cut[thing]:
            for verb, cut in CUT_VERBS.items():
                into[f"{verb} {name} with knife"] = (Kitchen._cut, thing, cut)
        for appliance in here:
            into[f"cook {name} with {appliance}"] = (Kitchen._cook, thing, appliance)

    def _read(self, _: int, __: int) -> str:
        self.has_read = True
        dishes = listing(indefinite(self._described(*line)) for line in self.recipe)
        return f"The recipe: for this meal you need {dishes}."

    def _cut(self, thing: int, cut: int) -> str:
        self.cut[thing] = cut
        verb = next(verb for verb, number in CUT_VERBS.items() if number == cut)
        return f"You {verb} the {self.house.things[thing]}."

    def _cook(self, thing: int, appliance: str) -> str:
        self.cooked[thing] = BURNT if self.cooked[thing] else APPLIANCES[appliance]
        verb = {"fried": "fry", "roasted": "roast", "grilled": "grill", "burnt": "burn"}[COOKED[self.cooked[thing]]]
        return f"You {verb} the {self.house.things[thing]}."

    def _prepare(self, _: int, __: int) -> str:
        for line in self.recipe:
            self.places[line.thing] = GONE
        self.places[MEAL] = CARRIED
        return "You prepare the meal and take it."

    def _eat(self, thing: int, _: int) -> str:
        self.places[thing] = GONE
        self.has_eaten = thing == MEAL
        return f"You eat the {self.house.things[thing]}."

    # ---- words ----------------------------------------------------------------------------------------------

    def noun(self, thing: int) -> str:
        return indefinite(self._described(thing, self.cut[thing], self.cooked[thing]))

    def fittings(self) -> list[str]:
        names = [indefinite(name) for name, room in self.appliances.items() if room == self.room]
        return [f"There is {listing(names)}."] if names else []

    def _described(self, thing: int, cut: int, cooked: int) -> str:
        """The name of a thing with its state, such as ``diced, fried carrot``."""
        states = ", ".join(filter(None, (CUTS[cut], COOKED[cooked])))
        return f"{states} {self.house.things[thing]}".strip()
