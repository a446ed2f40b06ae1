"""Substances: melting and boiling points, exchange of heat, and what becomes of a mixture."""

from collections.abc import Collection
from typing import NamedTuple

from manyturn.envs.adventure.object_names import listing

SOLID, LIQUID, GAS = range(3)
ROOM_DEGREES = 20
HEATED, AMBIENT = 6, 20
"""A minute closes the sixth part of the difference to a device, the twentieth of that to the room."""


class Substance(NamedTuple):
    """A substance that changes its state, with points in degrees Celsius (rounded) and its name in each state."""

    melts: int
    boils: int
    forms: tuple[str, str, str]


def _metal(name: str, melts: int, boils: int) -> Substance:
    return Substance(melts, boils, (name, f"molten {name}", f"{name} vapour"))


def _liquid(name: str, melts: int, boils: int) -> Substance:
    return Substance(melts, boils, (f"frozen {name}", name, f"{name} vapour"))


SUBSTANCES = {
    "water": Substance(0, 100, ("ice", "water", "steam")),
    **{name: _liquid(name, *points) for name, points in {
        "ethanol": (-114, 78), "mercury": (-39, 357), "acetone": (-95, 56), "benzene": (6, 80),
        "glycerol": (18, 290), "olive oil": (-6, 300), "acetic acid": (17, 118), "bromine": (-7, 59),
        "turpentine": (-55, 155), "formic acid": (8, 101), "toluene": (-95, 111), "aniline": (-6, 184),
        "cyclohexane": (7, 81), "nitrobenzene": (6, 211), "methanol": (-98, 65), "butanol": (-90, 118),
        "pyridine": (-42, 115), "decane": (-30, 174), "octane": (-57, 126), "chloroform": (-64, 61),
    }.items()},
    **{name: _metal(name, *points) for name, points in {
        "lead": (327, 1749), "tin": (232, 2602), "zinc": (420, 907), "aluminium": (660, 2470),
        "copper": (1085, 2562), "silver": (962, 2162), "gold": (1064, 2970), "gallium": (30, 2400),
        "bismuth": (272, 1564), "beeswax": (63, 370), "paraffin": (55, 370), "sulphur": (115, 445),
        "iodine": (114, 184), "naphthalene": (80, 218), "sodium": (98, 883), "phosphorus": (44, 280),
        "stearic acid": (69, 361), "camphor": (175, 209), "coconut fat": (25, 300), "menthol": (42, 212),
        "lithium": (181, 1342), "indium": (157, 2072), "magnesium": (650, 1091), "selenium": (221, 685),
    }.items()},
}  # fmt: skip
AIMS = {"melt": (SOLID, LIQUID), "boil": (LIQUID, GAS), "freeze": (LIQUID, SOLID)}
"""Verb -> the state before and after."""
PRODUCTS: dict[str, tuple[str, ...]] = {
    "brine": ("salt", "water"),
    "syrup": ("sugar", "water"),
    "dough": ("flour", "water"),
    "paste": ("starch", "water"),
    "plaster": ("gypsum", "water"),
    "soapy water": ("soap", "water"),
    "limewater": ("lime", "water"),
    "ink": ("gum", "soot", "water"),
    "lemonade": ("lemon juice", "sugar", "water"),
    "concrete": ("cement", "gravel", "water"),
    "mortar": ("lime", "sand", "water"),
    "slime": ("borax", "glue", "water"),
    "bread dough": ("flour", "water", "yeast"),
    "cocoa": ("cocoa powder", "milk", "sugar"),
    "cheese": ("milk", "vinegar"),
    "custard": ("egg yolk", "milk", "sugar"),
    "dressing": ("oil", "vinegar"),
    "mayonnaise": ("egg yolk", "oil", "vinegar"),
    "sodium acetate": ("baking soda", "vinegar"),
    "calcium acetate": ("chalk", "vinegar"),
    "iron acetate": ("iron filings", "vinegar"),
    "putty": ("chalk", "oil"),
    "modelling clay": ("flour", "oil", "salt"),
    "orange paint": ("red paint", "yellow paint"),
    "green paint": ("blue paint", "yellow paint"),
    "purple paint": ("blue paint", "red paint"),
    "pink paint": ("red paint", "white paint"),
    "grey paint": ("black paint", "white paint"),
    "brown paint": ("blue paint", "red paint", "yellow paint"),
    "sky-blue paint": ("blue paint", "white paint"),
}
"""Product -> its ingredients in alphabetical order."""
_PRODUCT_OF = {ingredients: product for product, ingredients in PRODUCTS.items()}


def state_of(name: str, degrees: int) -> int:
    """State of a substance at a temperature; those without points never change.

    >>> state_of("water", -1), state_of("water", 0), state_of("water", 100), state_of("salt", 900)
    (0, 1, 2, 0)
    """
    substance = SUBSTANCES.get(name)
    return 0 if substance is None else (degrees >= substance.melts) + (degrees >= substance.boils)


def form_of(ingredients: Collection[str], degrees: int) -> str:
    """Name of a substance, or of a mixture, at a temperature.

    >>> form_of(["lead"], 400), form_of(["flour", "water"], 20), form_of(["water", "oil"], 20)
    ('molten lead', 'dough', 'mixture of oil and water')
    """
    if len(ingredients) > 1:
        names = tuple(sorted(ingredients))
        return _PRODUCT_OF.get(names) or f"mixture of {listing(names)}"
    (name,) = ingredients
    substance = SUBSTANCES.get(name)
    return name if substance is None else substance.forms[state_of(name, degrees)]


def after(degrees: int, target: int, share: int, minutes: int) -> int:
    """Temperature after minutes next to something at a target temperature, in whole degrees.

    >>> after(20, 200, HEATED, 1), after(20, 200, HEATED, 60), after(25, 20, AMBIENT, 1)
    (50, 200, 24)
    """
    for _ in range(minutes):
        gap = target - degrees
        if not gap:
            break
        step = -(-abs(gap) // share)
        degrees += step if gap > 0 else -step
    return degrees


def suits(aim: str, name: str, degrees: int) -> bool:
    """True if a device at a temperature brings a substance to the state that an aim names, and no further.

    >>> suits("melt", "lead", 600), suits("melt", "lead", 1800), suits("boil", "lead", 1800), suits("freeze", "lead", 0)
    (True, False, True, True)
    """
    melts, boils, _ = SUBSTANCES[name]
    match aim:
        case "freeze":
            return degrees <= melts - 5
        case "melt":
            return melts + 5 <= degrees < boils
        case _:
            return degrees >= boils + 5
