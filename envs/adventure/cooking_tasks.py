"""Cooking from nothing but a number: every recipe can be made, no problem is in two splits.

Nothing is locked, and all ingredients, the knife and the cookbook exist once, so each task can be solved. Names and
recipe are drawn until the content hash falls into the split. Plans of rooms in ``test_unseen``, and the ways in which
its recipes prepare an ingredient, occur in no other split.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from manyturn.envs.adventure.cooking_world import APPLIANCES, COOKED, CUTS, FIRST_FOOD
from manyturn.envs.adventure.layout import Way, bridges, draw_ways, is_unseen, name_rooms, sample
from manyturn.envs.adventure.object_names import COLOURS, CONTAINERS, MATERIALS, ROOMS, SUPPORTS
from manyturn.envs.contract.stable_random import Draws
from manyturn.envs.contract.tasks.task import GeneratedTasks, Task, params_of_split

FOODS = (
    *("apple", "apricot", "aubergine", "banana", "beetroot", "cabbage", "carrot", "courgette", "cucumber", "leek"),
    *("lemon", "mango", "mushroom", "onion", "parsnip", "peach", "pear", "pepper", "pineapple", "plum", "potato"),
    *("pumpkin", "radish", "sausage", "steak", "tomato", "trout", "turnip"),
)
SIZES = {"train": 1_000_000, "validation": 100_000, "test": 100_000, "test_unseen": 100_000}
PROCESSING = ("none", "cut", "cook", "both")
MOST_ROOMS, MOST_INGREDIENTS = len(ROOMS) // 2, 5


@dataclass(frozen=True)
class CookingLevel:
    """Size of the task.

    Args:
        rooms: how many, the kitchen among them.
        ingredients: of the recipe; as many others lie about.
        processing: none, cut, cook or both: what the recipe asks for.
        turns: that an episode may take.
    """

    rooms: int
    ingredients: int
    processing: str
    turns: int


LEVELS = {
    "easy": CookingLevel(2, 1, "both", 20),
    "medium": CookingLevel(4, 2, "both", 40),
    "hard": CookingLevel(7, 3, "both", 70),
}


class CookingTasks(GeneratedTasks):
    """The tasks of one split and size."""

    def __init__(self, split: str, name: str, level: CookingLevel):
        prefix = f"{split}/{name}/"
        super().__init__(lambda number: _make(prefix, split, name, level, number), SIZES[split], prefix)


def check_level(level: CookingLevel) -> str:
    """The name of a size, such as ``w3-i2-both``. Raises ValueError if there are no tasks of it."""
    sizes = (("rooms", level.rooms, MOST_ROOMS), ("ingredients", level.ingredients, MOST_INGREDIENTS))
    for what, size, most in sizes:
        if not 1 <= size <= most:
            raise ValueError(f"{what} must be from 1 to {most}, not {size}")
    if level.processing not in PROCESSING:
        raise ValueError(f"no processing {level.processing!r}: choose {', '.join(PROCESSING)}")
    return f"w{level.rooms}-i{level.ingredients}-{level.processing}"


def _make(prefix: str, split: str, name: str, level: CookingLevel, number: int) -> Task:
    draws, unseen = Draws("cooking", prefix, number), split == "test_unseen"
    ways = draw_ways(draws, level.rooms)
    doors = [way for way in bridges(ways) if draws.below(10) < 4]

    def draw() -> dict[str, Any]:
        rooms = name_rooms(draws, ways, level.rooms, unseen, ("kitchen",))
        params = _params(draws, level, ways, doors) | {"rooms": "|".join(rooms)}
        foods, recipe = _recipe(draws, level, unseen)
        return params | _things(draws, params["furniture"], level.rooms, foods) | {"recipe": recipe}

    return Task(f"{prefix}{number}", split, params_of_split(draw, split), name)


def _params(draws: Draws, level: CookingLevel, ways: Sequence[Way], doors: Sequence[int]) -> dict[str, Any]:
    """Doors, furniture, appliances and start."""
    colours = sample(draws, COLOURS, len(COLOURS))
    materials = sample(draws, MATERIALS, len(MATERIALS))
    passages = []
    for number, (a, direction, b) in enumerate(ways):
        door = f" {colours.pop()} door {draws.pick(('open', 'closed'))}" if number in doors else ""
        passages.append(f"{a} {direction} {b}{door}")
    pieces = ["0 fridge closed", f"0 {materials.pop()} {draws.pick(SUPPORTS)}"]
    for room in range(1, level.rooms):
        if draws.below(2) and len(colours) > level.rooms:
            pieces.append(f"{room} {colours.pop()} {draws.pick(CONTAINERS)} {draws.pick(('open', 'closed'))}")
        elif materials:
            pieces.append(f"{room} {materials.pop()} {draws.pick(SUPPORTS)}")
    grill = level.rooms - 1
    return {
        "ways": "|".join(passages),
        "furniture": "|".join(pieces),
        "appliances": "|".join(f"{name}:{grill if name == 'grill' else 0}" for name in APPLIANCES),
        "start": draws.below(level.rooms),
    }


def _recipe(draws: Draws, level: CookingLevel, unseen: bool) -> tuple[list[str], str]:
    """Foods, those of the recipe first, and the recipe: for each its number, cut and cooking."""
    cuts = range(len(CUTS)) if level.processing in ("cut", "both") else (0,)
    ways = range(len(COOKED) - 1) if level.processing in ("cook", "both") else (0,)
    foods: list[str] = []
    lines = []
    while len(lines) < level.ingredients:
        food, cut, cooked = draws.pick(FOODS), draws.pick(cuts), draws.pick(ways)
        if food not in foods and is_unseen("dish", food, CUTS[cut], COOKED[cooked]) == unseen:
            lines.append(f"{FIRST_FOOD + len(lines)} {cut} {cooked}")
            foods.append(food)
    others = [food for food in FOODS if food not in foods]
    return [*foods, *sample(draws, others, level.ingredients)], "|".join(lines)


def _things(draws: Draws, furniture: str, rooms: int, foods: Sequence[str]) -> dict[str, str]:
    """Things and their places: the cookbook and the knife are in the kitchen, food is anywhere."""
    pieces = furniture.count("|") + 1
    places = [*range(rooms), *range(rooms, rooms + pieces), *range(rooms, rooms + pieces)]
    things = ["meal:-2", f"cookbook:{rooms + 1}", f"knife:{draws.pick((0, rooms + 1))}"]
    return {"things": "|".join([*things, *(f"{food}:{draws.pick(places)}" for food in foods)])}
