"""Facts about animals, plants, rocks, tools and materials: categories, life spans, stages of life, conduction."""

from typing import NamedTuple

from manyturn.envs.adventure.object_names import indefinite

ANIMALS = {
    "mouse": 2, "hamster": 3, "crab": 4, "snail": 5, "guinea pig": 6, "lizard": 7, "frog": 8, "rabbit": 9,
    "canary": 10, "toad": 11, "dove": 12, "newt": 13, "goldfish": 14, "cat": 15, "chinchilla": 16, "gecko": 17,
    "starling": 18, "axolotl": 19, "python": 25, "crow": 28, "tarantula": 30, "raven": 35, "carp": 40, "iguana": 22,
    "cockatoo": 60, "macaw": 70, "tortoise": 120, "terrapin": 45, "koi": 55, "lobster": 65, "locust": 1,
}  # fmt: skip
"""Animal -> its life span in years, roughly."""
PLANTS = (
    *("fern", "ivy", "moss", "cactus", "orchid", "tulip", "daisy", "mint", "basil", "clover", "violet", "lavender"),
    *("rosemary", "thyme", "begonia", "geranium", "lily", "primrose", "dandelion", "nettle", "parsley", "sage"),
)
ROCKS = (
    *("granite", "basalt", "marble", "slate", "limestone", "sandstone", "quartz", "obsidian", "flint", "pumice"),
    *("gneiss", "shale", "dolerite", "travertine", "jasper", "agate"),
)
TOOLS = (
    *("hammer", "saw", "screwdriver", "wrench", "chisel", "drill", "trowel", "axe", "file", "clamp", "mallet"),
    *("crowbar", "plane", "spanner", "sickle", "rake"),
)
_MASS = {*ROCKS, "ivy", "moss", "mint", "basil", "clover", "lavender", "rosemary", "thyme", "parsley", "sage"}
CATEGORIES = {"animal": tuple(ANIMALS), "plant": PLANTS, "rock": ROCKS, "tool": TOOLS}
_CATEGORY_OF = {name: category for category, names in CATEGORIES.items() for name in names}
MATERIALS = {
    **dict.fromkeys(("copper", "iron", "silver", "brass", "aluminium", "steel", "gold", "graphite", "nickel"), 1),
    **dict.fromkeys(("glass", "wooden", "rubber", "plastic", "wax", "chalk", "cork", "ceramic", "paper"), 0),
}
"""Material -> 1 if it conducts electricity. A colour in its place says nothing."""
SHAPES = ("rod", "ring", "spoon", "key", "button", "tube", "plate", "ruler", "disc", "cube", "peg", "hook")


class Life(NamedTuple):
    """Stages of a living thing.

    Attributes:
        stages: names, from the seed or the egg to the grown thing.
        ages: minutes of growth at which each begins.
    """

    stages: tuple[str, ...]
    ages: tuple[int, ...]


def _crop(name: str) -> Life:
    return Life((f"{name} seed", f"{name} sprout", f"young {name} plant", f"ripe {name} plant"), (0, 12, 26, 45))


def _bird(egg: str, young: str, grown: str) -> Life:
    return Life((egg, young, grown), (0, 20, 40))


CROPS = {
    name: _crop(name)
    for name in (
        *("bean", "carrot", "cucumber", "lettuce", "maize", "melon", "onion", "pea", "pepper", "pumpkin", "radish"),
        *("rice", "sunflower", "tomato", "wheat", "barley", "beetroot", "cabbage", "cotton", "leek"),
    )
}
BIRDS = {
    "hen": _bird("hen egg", "chick", "hen"),
    "duck": _bird("duck egg", "duckling", "duck"),
    "goose": _bird("goose egg", "gosling", "goose"),
    "swan": _bird("swan egg", "cygnet", "swan"),
    "pigeon": _bird("pigeon egg", "squab", "pigeon"),
    "owl": _bird("owl egg", "owlet", "owl"),
    "eagle": _bird("eagle egg", "eaglet", "eagle"),
    "turkey": _bird("turkey egg", "poult", "turkey"),
    **{name: _bird(f"{name} egg", f"{name} chick", name) for name in ("quail", "ostrich", "penguin", "stork")},
    **{name: _bird(f"{name} egg", f"{name} hatchling", name) for name in ("turtle", "cobra", "alligator", "skink")},
}
LIVES = {**CROPS, **BIRDS}
WATERED = 50
"""Minutes of growth that one vessel of water is enough for."""


def with_article(name: str) -> str:
    """A thing with its article, if it takes one.

    >>> with_article("orchid"), with_article("moss")
    ('an orchid', 'moss')
    """
    return name if name in _MASS else indefinite(name)


def category_of(name: str) -> str:
    """Category of a thing; ``object`` where it has no other."""
    return _CATEGORY_OF.get(name, "object")


def stage_of(name: str, age: int) -> int:
    """Number of the stage that a living thing is in.

    >>> [stage_of("bean", age) for age in (0, 12, 45, 99)]
    [0, 1, 3, 3]
    """
    return sum(age >= begins for begins in LIVES[name].ages) - 1
