"""Customers: how many, names, addresses, and which split each belongs to."""

from dataclasses import dataclass
from typing import Any, TypedDict

from manyturn.envs.contract.stable_random import Draws

_FIRST = (
    "Ada Amir Anna Ben Carla Chen Dana Elif Emil Eva Femi Finn Grace Hana Hugo Ines Ivan Jana Joao Kai Kim Lars Lea "
    "Leo Lin Lucia Maya Mia Nadia Noor Olga Omar Paul Petra Rosa Sami Sara Tomas Uma Vera Yusuf Zoe"
).split()
_LAST = (
    "Ahmed Almeida Baker Berg Castro Chan Cohen Costa Diaz Dubois Fischer Garcia Haddad Hansen Ito Jensen Khan Kim "
    "Kowalski Lopez Martin Meyer Moreau Nguyen Novak Okafor Olsen Patel Popov Rossi Santos Sato Silva Singh Smith "
    "Suzuki Tanaka Virtanen Weber Wong Yilmaz Young"
).split()
_STREETS = ("Oak Street", "Mill Lane", "High Street", "Lake Road", "Park Avenue", "Hill Road", "Station Road")
_TOWNS = ("Arden", "Belton", "Corby", "Dunmore", "Elmwood", "Fairview", "Glenside")
FEWEST, MOST = 200, 2_000  # customers of a desk


class DatabaseArguments(TypedDict, total=False):
    """The arguments of a ``Database``, as an environment takes them."""

    users: int
    database: int


@dataclass(frozen=True)
class Database:
    """The records of a desk.

    Args:
        users: how many customers, from 200 to 2,000. Raises ValueError for other numbers.
        database: the seed that the records are made from.
    """

    users: int = 500
    database: int = 0

    def __post_init__(self) -> None:
        if not FEWEST <= self.users <= MOST:
            raise ValueError(f"users is {self.users}: it is from {FEWEST} to {MOST}")


def address(draws: Draws) -> str:
    """Such as ``12 Oak Street, Belton``."""
    return f"{draws.between(1, 99)} {draws.pick(_STREETS)}, {draws.pick(_TOWNS)}"


def full_name(draws: Draws) -> str:
    """First and last name."""
    return f"{draws.pick(_FIRST)} {draws.pick(_LAST)}"


def person(draws: Draws, number: int) -> dict[str, Any]:
    """Facts about a customer; no two have the same email address, or the same name and zip code."""
    name = full_name(draws)
    email = f"{name.lower().replace(' ', '.')}{number}@mail.com"
    return {"name": name, "email": email, "zip_code": f"{10_000 + 37 * number}", "address": address(draws)}


def split_of_user(key: str) -> str:
    """The split that a customer belongs to: a tenth of them each to validation and test."""
    return {0: "validation", 1: "test"}.get(int(key[1:]) % 10, "train")
