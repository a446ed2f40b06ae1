"""The airline's database."""

from functools import lru_cache
from typing import Any

from manyturn.envs.contract.stable_random import Draws
from manyturn.envs.desk.customer_generator import full_name, person
from manyturn.envs.desk.database import Tables

CITIES = ("Athens", "Berlin", "Cairo", "Delhi", "Lima", "Oslo", "Rome", "Tokyo")
CABINS = ("basic", "economy", "business")
_FLIGHTS = 240


@lru_cache(maxsize=8)
def tables(users: int, seed: int) -> Tables:
    """A database of this many customers, with two to six bookings each."""
    draws = Draws("desk travel", users, seed)
    flights: dict[str, Any] = {}
    for number in range(1, _FLIGHTS + 1):
        origin = draws.pick(CITIES)
        flights[f"F{number}"] = {
            "origin": origin,
            "destination": draws.pick([city for city in CITIES if city != origin]),
            "day": draws.between(1, 28),
            "delayed": draws.below(3) == 0,
            "free_seats": {cabin: draws.pick((0, 2, 9, 20)) for cabin in CABINS},
        }
    records: dict[str, Any] = {}
    bookings: dict[str, Any] = {}
    for number in range(1, users + 1):
        mine = tuple(f"B{len(bookings) + i + 1}" for i in range(draws.between(2, 6)))
        one = person(draws, number)
        records[f"C{number}"] = {**one, "tier": draws.pick(("none", "silver", "gold")), "bookings": mine}
        for key in mine:
            bookings[key] = _booking(draws, f"C{number}", one["name"], f"F{draws.between(1, _FLIGHTS)}")
    return Tables({"users": records, "bookings": bookings, "flights": flights})


def _booking(draws: Draws, user: str, name: str, flight: str) -> dict[str, Any]:
    passengers = tuple(dict.fromkeys((name, *(full_name(draws) for _ in range(draws.below(3))))))
    return {
        "user_id": user,
        "status": draws.pick(("confirmed", "confirmed", "confirmed", "flown")),
        "flight_id": flight,
        "cabin": draws.pick(CABINS),
        "passengers": passengers,
        "bags": draws.between(0, len(passengers)),
        "insured": draws.below(3) == 0,
        "renamed": draws.below(4) == 0,
        "voucher": draws.below(4) == 0,
        "days_since_booking": draws.pick((0, 1, 1, 5, 20)),
        "paid": draws.between(80, 900),
        "taxes": draws.between(10, 79),
    }
