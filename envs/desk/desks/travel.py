"""The airline's policy and what its customers want."""

from manyturn.envs.contract.stable_random import Draws
from manyturn.envs.desk.customer_generator import full_name
from manyturn.envs.desk.database import Record, Store
from manyturn.envs.desk.desks.travel_tables import CABINS, tables
from manyturn.envs.desk.desks.travel_tools import TravelTools
from manyturn.envs.desk.pack import Arguments, Drawn, Kind, Pack, Rule, Thing, no_arguments
from manyturn.envs.tools.calls import CallRequest

_CHANGES = frozenset({"cancel_booking", "move_booking", "set_cabin", "set_bags", "rename_passenger", "add_insurance"})


def _booking(store: Store, call: Arguments) -> Record:
    return store["bookings", call["booking_id"]]


def _flight(store: Store, call: Arguments) -> Record:
    return store["flights", _booking(store, call)["flight_id"]]


def _sold_out(store: Store, key: str, cabin: str, passengers: int) -> bool:
    return store["flights", key]["free_seats"][cabin] < passengers


def _another_route(store: Store, call: Arguments) -> bool:
    old, new = _flight(store, call), store["flights", call["flight_id"]]
    return (old["origin"], old["destination"]) != (new["origin"], new["destination"])


def _no_seats_to_move_to(store: Store, call: Arguments) -> bool:
    booking = _booking(store, call)
    return _sold_out(store, call["flight_id"], booking["cabin"], len(booking["passengers"]))


RULES = (
    Rule(
        "R1",
        "Only a confirmed booking can be changed, insured or cancelled.",
        _CHANGES,
        lambda store, call: _booking(store, call)["status"] != "confirmed",
    ),
    Rule(
        "R2",
        "A booking can be cancelled only if it was made at most one day ago, is insured, or is in business.",
        frozenset({"cancel_booking"}),
        lambda store, call: (
            not (
                _booking(store, call)["days_since_booking"] <= 1
                or _booking(store, call)["insured"]
                or _booking(store, call)["cabin"] == "business"
            )
        ),
    ),
    Rule(
        "R3",
        "A booking in basic cannot be moved to another flight.",
        frozenset({"move_booking"}),
        lambda store, call: _booking(store, call)["cabin"] == "basic",
    ),
    Rule(
        "R4", "A booking can be moved only to a flight on the same route.", frozenset({"move_booking"}), _another_route
    ),
    Rule(
        "R5",
        "The new flight must have a free seat in the booking's cabin for every passenger.",
        frozenset({"move_booking"}),
        _no_seats_to_move_to,
    ),
    Rule(
        "R6",
        "A cabin can only be upgraded: from basic to economy or business, or from economy to business.",
        frozenset({"set_cabin"}),
        lambda store, call: CABINS.index(call["cabin"]) <= CABINS.index(_booking(store, call)["cabin"]),
    ),
    Rule(
        "R7",
        "A new cabin must have a free seat for every passenger.",
        frozenset({"set_cabin"}),
        lambda store, call: _sold_out(
            store, _booking(store, call)["flight_id"], call["cabin"], len(_booking(store, call)["passengers"])
        ),
    ),
    Rule(
        "R8",
        "At most two bags per passenger.",
        frozenset({"set_bags"}),
        lambda store, call: call["bags"] > 2 * len(_booking(store, call)["passengers"]),
    ),
    Rule(
        "R9",
        "Paid bags cannot be removed.",
        frozenset({"set_bags"}),
        lambda store, call: call["bags"] < _booking(store, call)["bags"],
    ),
    Rule(
        "R10",
        "A passenger can be replaced only once per booking.",
        frozenset({"rename_passenger"}),
        lambda store, call: _booking(store, call)["renamed"],
    ),
    Rule(
        "R11",
        "A booking can be insured at most one day after it was made.",
        frozenset({"add_insurance"}),
        lambda store, call: _booking(store, call)["days_since_booking"] > 1,
    ),
    Rule(
        "R12",
        "A voucher is given only for a delayed flight, and only once per booking.",
        frozenset({"give_voucher"}),
        lambda store, call: _booking(store, call)["voucher"] or not _flight(store, call)["delayed"],
    ),
)


def _move(draws: Draws, store: Store, key: str) -> Drawn:
    booking = store["bookings", key]
    old = store["flights", booking["flight_id"]]
    every = store.tables.records["flights"]
    same = [
        other
        for other, flight in every.items()
        if (flight["origin"], flight["destination"]) == (old["origin"], old["destination"])
    ]
    new = draws.pick(same if draws.below(4) else tuple(every))
    flight = every[new]
    days = [other for other in every if every[other]["day"] == flight["day"] and other != new]
    if new == booking["flight_id"] or any(_route(every[other]) == _route(flight) for other in days):
        return None  # nothing to do, or the customer could mean another flight of that day
    return {"flight_id": new}, {"flight": f"{_route(flight)} on day {flight['day']}"}


def _route(flight: Record) -> str:
    return f"{flight['origin']} to {flight['destination']}"


def _cabin(draws: Draws, store: Store, key: str) -> Drawn:
    cabin = draws.pick([cabin for cabin in CABINS if cabin != store["bookings", key]["cabin"]])
    return {"cabin": cabin}, {"cabin": cabin}


def _bags(draws: Draws, store: Store, key: str) -> Drawn:
    bags = draws.between(0, 8)
    return {"bags": bags}, {"bags": str(bags)}


def _rename(draws: Draws, store: Store, key: str) -> Drawn:
    old, new = draws.pick(store["bookings", key]["passengers"]), full_name(draws)
    if new in store["bookings", key]["passengers"]:
        return None
    return {"old_name": old, "new_name": new}, {"old": old, "new": new}


def _look_at_flight(store: Store, call: Arguments) -> tuple[CallRequest, ...]:
    return (CallRequest("get_flight", {"flight_id": _booking(store, call)["flight_id"]}),)


def _look_for_flights(store: Store, call: Arguments) -> tuple[CallRequest, ...]:
    new = store["flights", call["flight_id"]]
    return (CallRequest("search_flights", {"origin": new["origin"], "destination": new["destination"]}),)


KINDS = (
    Kind(
        "cancel",
        "cancel_booking",
        "booking_id",
        "Cancel {object}.",
        "a cancellation of {object}",
        {},
        no_arguments,
        simple=True,
    ),
    Kind(
        "move",
        "move_booking",
        "booking_id",
        "Move {object} to the flight {flight}.",
        "another flight for {object}",
        {"flight": "new flight"},
        _move,
        _look_for_flights,
    ),
    Kind(
        "upgrade",
        "set_cabin",
        "booking_id",
        "Change {object} to {cabin}.",
        "another cabin for {object}",
        {"cabin": "cabin"},
        _cabin,
        _look_at_flight,
    ),
    Kind(
        "bags",
        "set_bags",
        "booking_id",
        "Set the total number of bags of {object} to {bags}.",
        "another number of bags for {object}",
        {"bags": "number of bags"},
        _bags,
        simple=True,
    ),
    Kind(
        "rename",
        "rename_passenger",
        "booking_id",
        "In {object}, replace {old} with {new}.",
        "a change of a passenger in {object}",
        {"old": "passenger to be replaced", "new": "passenger who travels instead"},
        _rename,
    ),
    Kind(
        "insure",
        "add_insurance",
        "booking_id",
        "Insure {object}.",
        "insurance for {object}",
        {},
        no_arguments,
        simple=True,
    ),
    Kind(
        "voucher",
        "give_voucher",
        "booking_id",
        "Give a voucher for the delay of {object}.",
        "a voucher for the delay of {object}",
        {},
        no_arguments,
        _look_at_flight,
        simple=True,
    ),
)

TRAVEL = Pack(
    name="travel",
    place="You work at the service desk of an airline.",
    tables=tables,
    desk_tools=TravelTools,
    rules=RULES,
    kinds=KINDS,
    things={
        "booking_id": Thing(
            "bookings",
            "get_booking",
            "booking",
            "the booking from {words}",
            lambda store, key: (_route(store["flights", store["bookings", key]["flight_id"]]),),
        )
    },
    figures={"paid": "price", "taxes": "taxes"},
    brief={
        "users": ("bookings",),
        "bookings": ("status", "flight_id", "cabin", "passengers", "bags", "insured", "voucher", "days_since_booking"),
    },
    ids={"C": "user_id", "B": "booking_id", "F": "flight_id"},
)
