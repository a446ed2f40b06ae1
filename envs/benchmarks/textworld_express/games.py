"""TextWorld-Express's games: their parameters, splits and turn limits.

Source: the package textworld-express 1.1.0, whose engine knows the same names, bounds and seeds; a test compares them.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from manyturn.envs.contract.near_names import near_names
from manyturn.envs.contract.tasks.task import GeneratedTasks, Task

PACKAGE, VERSION = "textworld_express", "1.1.0"
FOLDS = {"train": "train", "validation": "dev", "test": "test"}  # split -> the engine's name of it
SEEDS = 1000  # of each split
_FIRST_SEEDS = {"train": 0, "validation": 10_000, "test": 20_000}
_SWITCHES = {"includeDoors": range(2), "limitInventorySize": range(2)}


class Game(NamedTuple):
    """A game.

    Attributes:
        parameters: name -> the values that it may have.
        turns: default of ``max_turns``: the package's own limit, or more where the engine's own path needs more.
        shares: True if games of one process move each other's things: the engine makes the things of each sorting
            problem once, and puts the same ones into every game of it.
    """

    parameters: Mapping[str, range]
    turns: int = 100
    shares: bool = False


GAMES = {
    "cookingworld": Game(
        {
            "numLocations": range(1, 12),
            "numIngredients": range(1, 6),
            "numDistractorItems": range(11),
            **_SWITCHES,
        },
        turns=200,
    ),
    "twc": Game({"numLocations": range(1, 4), "numItemsToPutAway": range(1, 5), **_SWITCHES}),
    "coin": Game({"numLocations": range(1, 12), "numDistractorItems": range(11), **_SWITCHES}),
    "mapreader": Game(
        {
            "numLocations": range(2, 49),  # the engine says 1 to 50, and breaks at both ends
            "maxDistanceApart": range(1, 9),
            "maxDistractorItemsPerLocation": range(4),
            **_SWITCHES,
        }
    ),
    "arithmetic": Game({}),
    "sorting": Game({}, shares=True),
    "simonsays": Game(
        {
            "gameLength": range(1, 1001),
            "numDistractors": range(6),
            "memorization": range(2),
            "verbose": range(2),
        }
    ),
    "peckingorder": Game({}),
}


def checked(game: str, parameters: Mapping[str, int]) -> Game:
    """The game with this name. Raises ValueError that names the fix if it lacks a parameter, or a value of it."""
    if game not in GAMES:
        near = near_names(game, GAMES, n=3)
        hint = f"did you mean {', '.join(near)}?" if near else f"there are {', '.join(GAMES)}"
        raise ValueError(f"TextWorld-Express has no game {game!r}: {hint}")
    allowed = GAMES[game].parameters
    for name, value in parameters.items():
        if name not in allowed:
            there = f"it has {', '.join(allowed)}" if allowed else "it has none"
            raise ValueError(f"{game} has no parameter {name!r}: {there}")
        values = allowed[name]
        if type(value) is not int or value not in values:
            raise ValueError(f"{game}: {name} = {value!r} must be a whole number from {values[0]} to {values[-1]}")
    return GAMES[game]


def tasks_of(split: str, game: str, parameters: Mapping[str, int]) -> GeneratedTasks:
    """The games of a split, one for each official seed."""
    prefix, first = f"{split}/{game}/", _FIRST_SEEDS[split]
    params: dict[str, Any] = {"game": game, "parameters": dict(parameters), "fold": FOLDS[split], "version": VERSION}
    return GeneratedTasks(
        lambda number: Task(f"{prefix}{number}", split, {**params, "seed": first + number}, tags=(game,)),
        SEEDS,
        prefix,
    )
