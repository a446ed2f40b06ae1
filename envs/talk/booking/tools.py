"""The booking desk's system: what it finds and books, as tools."""

from collections.abc import Mapping
from typing import Any, Literal

from manyturn.envs.contract.random_keys import digest
from manyturn.envs.talk.booking.town import HOTEL, RESTAURANT, Town, Venue
from manyturn.envs.tools.tool import ToolError
from manyturn.envs.tools.toolset import Toolset

SHOWN = 3  # venues that a query lists
Day = Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
Area = Literal["north", "south", "east", "west", "centre"]
Price = Literal["cheap", "moderate", "expensive"]


class BookingDesk:
    """Finds venues of a town and books them. Its public methods from ``query_restaurants`` on are the tools.

    Attributes:
        toolset: the tools.
        town: where it is.
        booked: kind -> the last booking: name, terms and reference.
        venue_names: names of the venues that the last query listed; None before the first.
    """

    town: Town

    def __init__(self) -> None:
        self.toolset = Toolset([self.query_restaurants, self.query_hotels, self.book_table, self.book_room])
        self.booked: dict[str, dict[str, str]] = {}
        self.venue_names: list[str] | None = None

    def open(self, town: Town, key: str) -> None:
        """Forget everything and work in a town; the key makes references differ between tasks."""
        self.town, self._key = town, key
        self.booked, self.venue_names = {}, None

    def venue(self, kind: str) -> Venue | None:
        """The venue that is booked."""
        return self.town.named(self.booked[kind]["name"], kind) if kind in self.booked else None

    def query_restaurants(
        self, area: Area | None = None, food: str | None = None, price: Price | None = None
    ) -> dict[str, Any]:
        """Find restaurants. Omit a filter to accept any value.

        Args:
            area: part of town.
            food: such as thai.
            price: price range.
        """
        return self._query(RESTAURANT, {"area": area, "food": food and food.lower(), "price": price})

    def query_hotels(
        self, area: Area | None = None, stars: int | None = None, price: Price | None = None
    ) -> dict[str, Any]:
        """Find hotels. Omit a filter to accept any value.

        Args:
            area: part of town.
            stars: from 2 to 5.
            price: price range.
        """
        return self._query(HOTEL, {"area": area, "stars": stars and f"{stars} stars", "price": price})

    def book_table(self, name: str, day: Day, time: str, people: int) -> dict[str, str]:
        """Book a table. This replaces an earlier booking.

        Args:
            name: name of the restaurant.
            day: day of the week, in lower case.
            time: such as 18:30.
            people: number of people.
        """
        return self._book(RESTAURANT, name, {"day": day, "time": time, "people": f"{people} people"})

    def book_room(self, name: str, day: Day, nights: int, people: int) -> dict[str, str]:
        """Book a room. This replaces an earlier booking.

        Args:
            name: name of the hotel.
            day: day of arrival, in lower case.
            nights: number of nights.
            people: number of people.
        """
        return self._book(HOTEL, name, {"day": day, "nights": f"{nights} nights", "people": f"{people} people"})

    def _query(self, kind: str, arguments: Mapping[str, str | int | None]) -> dict[str, Any]:
        constraints = {name: str(value) for name, value in arguments.items() if value is not None}
        venues = self.town.find(kind, constraints)
        self.venue_names = [venue.name for venue in venues[:SHOWN]]
        return {"found": len(venues), "first": [venue.facts() for venue in venues[:SHOWN]]}

    def _book(self, kind: str, name: str, terms: Mapping[str, str]) -> dict[str, str]:
        venue = self.town.named(name, kind)
        if venue is None:
            raise ToolError(f"there is no {kind} by that name: search first")
        if terms["day"] in venue.full:
            raise ToolError(f"{venue.name} is fully booked on {terms['day']}")
        reference = reference_of(self._key, kind, venue.name, terms)
        self.booked[kind] = {"name": venue.name, **terms, "reference": reference}
        return {"reference": reference}


def reference_of(*about: Any) -> str:
    """Three letters and three digits, other ones for every booking."""
    mark = digest("reference", *about)
    letters = "".join(chr(ord("A") + int(sign, 16)) for sign in mark[:3])
    return f"{letters}{int(mark[3:], 16) % 1000:03d}"
