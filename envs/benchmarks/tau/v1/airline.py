"""tau-bench's airline desk: 14 tools over flights, reservations and users.

Rules, messages and quirks are the original's (tau_bench/envs/airline/tools, MIT): seats are never taken, a changed
cabin is not written down, and a one-stop connection on the next day shows the first day's seats.
"""

import json
from typing import Any

from manyturn.envs.benchmarks.tau.store import Database, Record, copied
from manyturn.envs.benchmarks.tau.v1.refusal import Refusal
from manyturn.envs.benchmarks.tau.v1.retail import calculate, think, transfer_to_human_agents

Data = Database
Records = list[dict[str, Any]]

NEW_RESERVATIONS = ("HATHAT", "HATHAU", "HATHAV")
NEW_CERTIFICATES = ("certificate_3221322", "certificate_3221323", "certificate_3221324")
NOW = "2024-05-15T15:00:00"
AIRPORTS = {
    "SFO": "San Francisco",
    "JFK": "New York",
    "LAX": "Los Angeles",
    "ORD": "Chicago",
    "DFW": "Dallas",
    "DEN": "Denver",
    "SEA": "Seattle",
    "ATL": "Atlanta",
    "MIA": "Miami",
    "BOS": "Boston",
    "PHX": "Phoenix",
    "IAH": "Houston",
    "LAS": "Las Vegas",
    "MCO": "Orlando",
    "EWR": "Newark",
    "CLT": "Charlotte",
    "MSP": "Minneapolis",
    "DTW": "Detroit",
    "PHL": "Philadelphia",
    "LGA": "LaGuardia",
}


# ---- look-ups ----------------------------------------------------------------------------------------------------


def get_reservation_details(data: Data, reservation_id: str) -> str:
    if reservation_id in data["reservations"]:
        return data["reservations"].shown(reservation_id)
    raise Refusal("user not found")


def get_user_details(data: Data, user_id: str) -> str:
    if user_id in data["users"]:
        return data["users"].shown(user_id)
    raise Refusal("user not found")


def list_all_airports(data: Data) -> str:
    return json.dumps(AIRPORTS)


class Routes:
    """Numbers of the flights by origin, and by origin and destination, in the file's order."""

    def __init__(self, tables):
        self.leaving: dict[Any, list[str]] = {}
        self.between: dict[tuple[Any, Any], list[str]] = {}
        for number, flight in tables["flights"].items():
            self.leaving.setdefault(flight["origin"], []).append(number)
            self.between.setdefault((flight["origin"], flight["destination"]), []).append(number)

    def direct(self, origin: Any, destination: Any) -> list[str]:
        known = isinstance(origin, str) and isinstance(destination, str)
        return self.between.get((origin, destination), []) if known else []


def _shown(flight: Record, date: str) -> Record:
    """A flight on a date, without its other dates."""
    return {key: value for key, value in flight.items() if key != "dates"} | flight["dates"][date]


def search_direct_flight(data: Data, origin: str, destination: str, date: str) -> str:
    flights = data["flights"]
    found = [flights[number] for number in data.base.once("routes", Routes).direct(origin, destination)]
    return json.dumps(
        [_shown(one, date) for one in found if date in one["dates"] and one["dates"][date]["status"] == "available"]
    )


def search_onestop_flight(data: Data, origin: str, destination: str, date: str) -> str:
    flights, routes = data["flights"], data.base.once("routes", Routes)
    found = []
    for number in routes.leaving.get(origin, ()) if isinstance(origin, str) else ():
        first = flights[number]
        for other in routes.direct(first["destination"], destination):
            second, arrival = flights[other], first["scheduled_arrival_time_est"]
            next_date = f"2024-05-{int(date[-2:]) + 1}" if "+1" in arrival else date
            if arrival > second["scheduled_departure_time_est"]:
                continue
            if date in first["dates"] and next_date in second["dates"]:
                states = first["dates"][date]["status"], second["dates"][next_date]["status"]
                if states == ("available", "available"):
                    legs = _shown(first, date) | {"date": date}, _shown(second, date) | {"date": next_date}
                    found.append(legs)
    return json.dumps(found)


# ---- changes -----------------------------------------------------------------------------------------------------


def _seat(data: Data, number: str, date: str, cabin: str, passengers: int) -> tuple[Record, int]:
    """A flight and the price of a seat in it."""
    if number not in data["flights"]:
        raise Refusal(f"flight {number} not found")
    flight = data["flights"][number]
    if date not in flight["dates"]:
        raise Refusal(f"flight {number} not found on date {date}")
    day = flight["dates"][date]
    if day["status"] != "available":
        raise Refusal(f"flight {number} not available on date {date}")
    if day["available_seats"][cabin] < passengers:
        raise Refusal(f"not enough seats on flight {number}")
    return flight, day["prices"][cabin]


def _priced(flight: Record, price: int, origin: str, destination: str) -> None:
    flight["price"], flight["origin"], flight["destination"] = price, origin, destination


def book_reservation(
    data: Data,
    user_id: str,
    origin: str,
    destination: str,
    flight_type: str,
    cabin: str,
    flights: Records,
    passengers: Records,
    payment_methods: Records,
    total_baggages: int,
    nonfree_baggages: int,
    insurance: str,
) -> str:
    reservations = data["reservations"]
    if user_id not in data["users"]:
        raise Refusal("user not found")
    reservation_id = next((name for name in NEW_RESERVATIONS if name not in reservations), NEW_RESERVATIONS[-1])
    reservation = {
        "reservation_id": reservation_id,
        "user_id": user_id,
        "origin": origin,
        "destination": destination,
        "flight_type": flight_type,
        "cabin": cabin,
        "flights": copied(flights),
        "passengers": copied(passengers),
        "payment_history": copied(payment_methods),
        "created_at": NOW,
        "total_baggages": total_baggages,
        "nonfree_baggages": nonfree_baggages,
        "insurance": insurance,
    }
    total = 0
    for flight in reservation["flights"]:
        known, price = _seat(data, flight["flight_number"], flight["date"], cabin, len(passengers))
        _priced(flight, price, known["origin"], known["destination"])
        total += price * len(passengers)
    if insurance == "yes":
        total += 30 * len(passengers)
    total += 50 * nonfree_baggages
    _pay(data, user_id, payment_methods, total)
    reservations[reservation_id] = reservation
    data["users"].edit(user_id)["reservations"].append(reservation_id)
    return json.dumps(reservation)


def _pay(data: Data, user_id: str, payments: Records, total: int) -> None:
    methods = data["users"][user_id]["payment_methods"]
    for payment in payments:
        payment_id, amount = payment["payment_id"], payment["amount"]
        if payment_id not in methods:
            raise Refusal(f"payment method {payment_id} not found")
        if methods[payment_id]["source"] in ["gift_card", "certificate"] and methods[payment_id]["amount"] < amount:
            raise Refusal(f"not enough balance in payment method {payment_id}")
    paid = sum(payment["amount"] for payment in payments)
    if paid != total:
        raise Refusal(f"payment amount does not add up, total price is {total}, but paid {paid}")
    methods = data["users"].edit(user_id)["payment_methods"]
    for payment in payments:
        source = methods[payment["payment_id"]]["source"]
        if source == "gift_card":
            methods[payment["payment_id"]]["amount"] -= payment["amount"]
        elif source == "certificate":
            del methods[payment["payment_id"]]


def cancel_reservation(data: Data, reservation_id: str) -> str:
    if reservation_id not in data["reservations"]:
        raise Refusal("reservation not found")
    reservation = data["reservations"].edit(reservation_id)
    history = reservation["payment_history"]
    history.extend([{"payment_id": paid["payment_id"], "amount": -paid["amount"]} for paid in history])
    reservation["status"] = "cancelled"
    return json.dumps(reservation)


def send_certificate(data: Data, user_id: str, amount: int) -> str:
    if user_id not in data["users"]:
        raise Refusal("user not found")
    methods = data["users"].edit(user_id)["payment_methods"]
    for payment_id in NEW_CERTIFICATES:
        if payment_id not in methods:
            methods[payment_id] = {"source": "certificate", "amount": amount, "id": payment_id}
            return f"Certificate {payment_id} added to user {user_id} with amount {amount}."
    return str(None)  # a fourth certificate: the original says nothing and gives none


def _check_payment(data: Data, user_id: str, payment_id: str, total: int) -> bool:
    """Whether a gift card pays. Raises Refusal."""
    methods = data["users"][user_id]["payment_methods"]
    if payment_id not in methods:
        raise Refusal("payment method not found")
    source = methods[payment_id]["source"]
    if source == "certificate":
        raise Refusal("certificate cannot be used to update reservation")
    if source == "gift_card" and methods[payment_id]["amount"] < total:
        raise Refusal("gift card balance is not enough")
    return source == "gift_card"


def _charge(data: Data, reservation: Record, payment_id: str, total: int, by_gift_card: bool) -> None:
    if by_gift_card:
        data["users"].edit(reservation["user_id"])["payment_methods"][payment_id]["amount"] -= total
    if total != 0:
        reservation["payment_history"].append({"payment_id": payment_id, "amount": total})


def update_reservation_baggages(
    data: Data, reservation_id: str, total_baggages: int, nonfree_baggages: int, payment_id: str
) -> str:
    if reservation_id not in data["reservations"]:
        raise Refusal("reservation not found")
    reservation = data["reservations"][reservation_id]
    total = 50 * max(0, nonfree_baggages - reservation["nonfree_baggages"])
    by_gift_card = _check_payment(data, reservation["user_id"], payment_id, total)
    reservation = data["reservations"].edit(reservation_id)
    reservation["total_baggages"] = total_baggages
    reservation["nonfree_baggages"] = nonfree_baggages
    _charge(data, reservation, payment_id, total, by_gift_card)
    return json.dumps(reservation)


def update_reservation_flights(data: Data, reservation_id: str, cabin: str, flights: Records, payment_id: str) -> str:
    if reservation_id not in data["reservations"]:
        raise Refusal("reservation not found")
    reservation = data["reservations"][reservation_id]
    passengers, total, flights = len(reservation["passengers"]), 0, copied(flights)
    for flight in flights:
        kept = [
            held
            for held in reservation["flights"]
            if held["flight_number"] == flight["flight_number"]
            and held["date"] == flight["date"]
            and cabin == reservation["cabin"]
        ]
        if kept:
            _priced(flight, kept[0]["price"], kept[0]["origin"], kept[0]["destination"])
        else:
            known, price = _seat(data, flight["flight_number"], flight["date"], cabin, passengers)
            _priced(flight, price, known["origin"], known["destination"])
        total += flight["price"] * passengers
    total -= sum(flight["price"] for flight in reservation["flights"]) * passengers
    by_gift_card = _check_payment(data, reservation["user_id"], payment_id, total)
    reservation = data["reservations"].edit(reservation_id)
    reservation["flights"] = flights
    _charge(data, reservation, payment_id, total, by_gift_card)
    return json.dumps(reservation)


def update_reservation_passengers(data: Data, reservation_id: str, passengers: Records) -> str:
    if reservation_id not in data["reservations"]:
        raise Refusal("reservation not found")
    if len(passengers) != len(data["reservations"][reservation_id]["passengers"]):
        raise Refusal("number of passengers does not match")
    data["reservations"].edit(reservation_id)["passengers"] = copied(passengers)
    return data["reservations"].shown(reservation_id)


TOOLS = (
    book_reservation,
    calculate,
    cancel_reservation,
    get_reservation_details,
    get_user_details,
    list_all_airports,
    search_direct_flight,
    search_onestop_flight,
    send_certificate,
    think,
    transfer_to_human_agents,
    update_reservation_baggages,
    update_reservation_flights,
    update_reservation_passengers,
)
