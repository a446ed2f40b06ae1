"""Made-up cities and what an atlas says of them: a new table for every task, so nothing can be known beforehand."""

from collections.abc import Mapping

from manyturn.envs.contract.stable_random import Draws
from manyturn.envs.talk.guessing.trait_table import Table, Trait

TRAITS = (
    Trait("capital", "Is it a capital?", ("capital",)),
    Trait("coast", "Is it on the coast?", ("coast", "sea", "coastal")),
    Trait("river", "Is it on a river?", ("river",)),
    Trait("hills", "Is it in the hills?", ("hills", "hilly", "mountains")),
    Trait("north", "Is it in the north?", ("north", "northern")),
    Trait("old", "Is it old?", ("old", "ancient", "historic")),
    Trait("walls", "Does it have walls?", ("walls", "wall")),
    Trait("university", "Does it have a university?", ("university",)),
    Trait("cathedral", "Does it have a cathedral?", ("cathedral", "church")),
    Trait("airport", "Does it have an airport?", ("airport", "plane")),
    Trait("tram", "Does it have trams?", ("trams", "tram")),
    Trait("million", "Do a million people live there?", ("million", "populous")),
)
# A short list: a model made from nothing has few words, and the names do not matter.
_NAMES = (
    "Arlen", "Belmar", "Corvik", "Dorham", "Eldon", "Falgate", "Garburg", "Helwick", "Istad", "Jorton", "Karville",
    "Lanford", "Morgate", "Norvik", "Ostmar", "Pelham", "Quinton", "Rosdale", "Selburg", "Tarmouth", "Ulwick", "Velmar",
    "Wenford", "Yarstad",
)  # fmt: skip


def draw_cities(draws: Draws, count: int) -> Table:
    """Cities that questions can tell apart; of one trait in ten the atlas says nothing."""
    while True:
        names: dict[str, None] = {}
        while len(names) < count:
            names[draws.pick(_NAMES)] = None
        table = Table(TRAITS, {name: _drawn(draws) for name in names})
        if table.told_apart(list(names)):
            return table


def _drawn(draws: Draws) -> Mapping[str, bool | None]:
    return {trait.name: None if draws.below(10) == 0 else bool(draws.below(2)) for trait in TRAITS}


def in_words(name: str, row: Mapping[str, bool | None]) -> str:
    """A line of the atlas.

    >>> in_words("Belmar", {"coast": True, "river": None, "old": False})
    'Belmar: coast, not old'
    """
    traits = [trait if has else f"not {trait}" for trait, has in row.items() if has is not None]
    return f"{name}: {', '.join(traits)}"
