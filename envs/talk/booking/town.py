"""A made-up town: restaurants and hotels, a new one for every task."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache

from manyturn.envs.contract.stable_random import Draws
from manyturn.envs.users.acts import Slot

RESTAURANT, HOTEL = "restaurant", "hotel"
KINDS = (RESTAURANT, HOTEL)
DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")

SLOTS: Mapping[str, Slot] = {
    slot.name: slot
    for slot in (
        Slot("area", ("area", "part of town", "district"), ("north", "south", "east", "west", "centre")),
        Slot(
            "food",
            ("food", "cuisine", "kitchen"),
            ("thai", "indian", "italian", "french", "greek", "turkish", "chinese", "spanish"),
        ),
        Slot("price", ("price range", "price"), ("cheap", "moderate", "expensive")),
        Slot("stars", ("number of stars", "stars"), ("2 stars", "3 stars", "4 stars", "5 stars")),
        Slot("day", ("day", "date"), DAYS),
        Slot("time", ("time",), ("12:30", "13:00", "18:00", "18:30", "19:00", "19:30", "20:00")),
        Slot("nights", ("length of stay", "how many nights"), tuple(f"{n} nights" for n in range(2, 8))),
        Slot("people", ("party size", "how many people"), tuple(f"{n} people" for n in range(2, 9))),
        Slot("phone", ("phone number", "phone", "telephone"), pattern="[0-9]{3}-[0-9]{4}"),
        Slot("address", ("address",), pattern="[0-9]{1,3} [a-z]+ (?:street|road|lane)"),
        Slot("reference", ("reference", "reference number"), pattern="[a-z]{3}[0-9]{3}"),
    )
}
TRAITS: Mapping[str, tuple[str, ...]] = {RESTAURANT: ("area", "food", "price"), HOTEL: ("area", "stars", "price")}
TERMS: Mapping[str, tuple[str, ...]] = {RESTAURANT: ("day", "time", "people"), HOTEL: ("day", "nights", "people")}

_FIRST = ("Copper", "Silver", "Old", "Little", "Green", "Golden", "Quiet", "Royal", "White", "Happy", "Lucky", "Red")
_SECOND = {
    RESTAURANT: ("Kettle", "Spoon", "Table", "Lantern", "Garden", "Pot", "Plate", "Olive", "Pepper", "Oven"),
    HOTEL: ("Crown", "Bridge", "Anchor", "Gate", "Tower", "Swan", "Harbour", "Lodge", "Court", "Bell"),
}
_STREETS = ("mill", "church", "station", "castle", "market", "river", "park", "king", "queen", "chapel")


@dataclass(frozen=True, slots=True)
class Venue:
    """A restaurant or a hotel; ``full`` are the days on which nothing is free. What is empty it does not have."""

    kind: str
    name: str
    area: str
    price: str
    phone: str
    address: str
    food: str = ""
    stars: str = ""
    full: tuple[str, ...] = ()

    def fits(self, constraints: Mapping[str, str]) -> bool:
        return all(getattr(self, trait) == value for trait, value in constraints.items())

    def facts(self) -> dict[str, str]:
        """Facts that the agent may know."""
        row = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in row.items() if value and name not in ("kind", "full")}


@dataclass(frozen=True)
class Town:
    """All venues, by kind."""

    venues: Mapping[str, Sequence[Venue]]

    def find(self, kind: str, constraints: Mapping[str, str]) -> list[Venue]:
        return [venue for venue in self.venues[kind] if venue.fits(constraints)]

    def named(self, name: str, kind: str) -> Venue | None:
        venues = (venue for venue in self.venues[kind] if venue.name.lower() == name.strip().lower())
        return next(venues, None)


@lru_cache(maxsize=256)
def town_of(key: str, size: int, reachable: bool = True, days_fill: bool = True, one_word: bool = False) -> Town:
    """The town of a key.

    Args:
        size: venues of each kind.
        reachable: whether they have phone number and address.
        days_fill: whether each is full on about every fourth day.
        one_word: whether a name is one word; there are ten of each kind.
    """
    draws = Draws("town", key)
    venues = {kind: _venues(draws, kind, size, one_word) for kind in KINDS}
    left_out = ({} if reachable else {"phone": "", "address": ""}) | ({} if days_fill else {"full": ()})
    return Town({kind: [replace(venue, **left_out) for venue in places] for kind, places in venues.items()})


def _venues(draws: Draws, kind: str, size: int, one_word: bool) -> Sequence[Venue]:
    made: dict[str, Venue] = {}
    phones: set[str] = set()
    while len(made) < size:
        first, second = draws.pick(_FIRST), draws.pick(_SECOND[kind])
        name = second if one_word else f"{first} {second}"
        phone = f"{draws.between(200, 999)}-{draws.between(1000, 9999)}"
        traits = {trait: draws.pick(SLOTS[trait].values) for trait in TRAITS[kind]}
        address = f"{draws.between(1, 199)} {draws.pick(_STREETS)} {draws.pick(('street', 'road', 'lane'))}"
        full = tuple(day for day in DAYS if draws.below(4) == 0)
        if name not in made and phone not in phones:
            made[name] = Venue(kind, name, phone=phone, address=address, full=full, **traits)
            phones.add(phone)
    return list(made.values())
