"""tau2-bench's airline desk: 14 tools over flights, reservations and users.

Rules, messages and quirks are the original's (src/tau2/domains/airline/tools.py, MIT): a booking takes seats, a change
of flights and a cancellation do not give them back.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from manyturn.envs.benchmarks.tau.agent_tools import AgentTools
from manyturn.envs.benchmarks.tau.arithmetic import calculated, has_other_signs
from manyturn.envs.benchmarks.tau.database import Record
from manyturn.envs.benchmarks.tau.v2.airline_records import (
    Certificate,
    FlightInfo,
    Passenger,
    Payment,
    Reservation,
    ReservationFlight,
)

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


class AirlineTools(AgentTools):
    """The agent's tools; ``WRITES`` change the database."""

    WRITES = frozenset(
        "book_reservation cancel_reservation send_certificate update_reservation_baggages update_reservation_flights "
        "update_reservation_passengers".split()
    )

    # ---- records --------------------------------------------------------------------------------------------

    def _user(self, user_id: str) -> Record:
        if user_id not in self.db["users"]:
            raise self.refusal(f"User {user_id} not found")
        return self.db["users"][user_id]

    def _reservation(self, reservation_id: str) -> Record:
        if reservation_id not in self.db["reservations"]:
            raise self.refusal(f"Reservation {reservation_id} not found")
        return self.db["reservations"][reservation_id]

    def _flight(self, number: str) -> Record:
        if number not in self.db["flights"]:
            raise self.refusal(f"Flight {number} not found")
        return self.db["flights"][number]

    def _day(self, number: str, date: str) -> Record:
        flight = self._flight(number)
        if date not in flight["dates"]:
            raise self.refusal(f"Flight {number} not found on date {date}")
        return flight["dates"][date]

    def _seat(self, number: str, date: str, cabin: str, passengers: int) -> tuple[Record, int]:
        """A flight and the price of a seat in it. Raises ValueError if there are too few."""
        flight, day = self._flight(number), self._day(number, date)
        if day["status"] != "available":
            raise self.refusal(f"Flight {number} not available on date {date}")
        if day["available_seats"][cabin] < passengers:
            raise self.refusal(f"Not enough seats on flight {number}")
        return flight, day["prices"][cabin]

    # ---- look-ups -------------------------------------------------------------------------------------------

    def calculate(self, expression: str) -> str:
        """Work out a sum.

        Args:
            expression: numbers, the operators + - * /, parentheses and spaces, such as "(12.5 + 3) * 2".
        """
        if has_other_signs(expression):
            raise self.refusal("Invalid characters in expression")
        return calculated(expression)

    def get_reservation_details(self, reservation_id: str) -> str:
        """Show a reservation.

        Args:
            reservation_id: such as "8JX2WO".
        """
        self._reservation(reservation_id)
        return self.db["reservations"].shown(reservation_id)

    def get_user_details(self, user_id: str) -> str:
        """Show a customer: name, membership, payment methods, saved passengers and reservations.

        Args:
            user_id: such as "sara_doe_496".
        """
        self._user(user_id)
        return self.db["users"].shown(user_id)

    def list_all_airports(self) -> str:
        """List all airports: code and city."""
        return json.dumps([{"iata": code, "city": city} for code, city in AIRPORTS.items()])

    def get_flight_status(self, flight_number: str, date: str) -> str:
        """Tell the status of a flight on a date.

        Args:
            flight_number: such as "HAT001".
            date: YYYY-MM-DD.
        """
        return self._day(flight_number, date)["status"]

    def search_direct_flight(self, origin: str, destination: str, date: str) -> str:
        """Find direct flights between two airports on a date.

        Args:
            origin: the airport's three letters.
            destination: the airport's three letters.
            date: YYYY-MM-DD.
        """
        return json.dumps(self._direct(date, origin, destination))

    def search_onestop_flight(self, origin: str, destination: str, date: str) -> str:
        """Find pairs of flights with one stop between two airports on a date.

        Args:
            origin: the airport's three letters.
            destination: the airport's three letters.
            date: of the first flight, YYYY-MM-DD.
        """
        pairs = []
        for first in self._direct(date, origin, None):
            first["date"] = date
            arrival = first["scheduled_arrival_time_est"]
            next_date = f"2024-05-{int(date[-2:]) + 1}" if "+1" in arrival else date
            for second in self._direct(next_date, first["destination"], destination, arrival):
                pairs.append([first, second | {"date": next_date}])
        return json.dumps(pairs)

    def _direct(
        self, date: str, origin: str | None, destination: str | None, leave_after: str | None = None
    ) -> list[Record]:
        table = self.db["flights"]
        flights: Iterable[Record] = map(table.__getitem__, table) if origin is None else self._leaving(origin)
        direct = []
        for flight in flights:
            if not (destination is None or flight["destination"] == destination):
                continue
            leaves = flight["scheduled_departure_time_est"]
            if date not in flight["dates"] or flight["dates"][date]["status"] != "available":
                continue
            if leave_after is None or leaves >= leave_after:
                direct.append(_direct_flight(flight, date))
        return direct

    def _leaving(self, origin: Any) -> list[Record]:
        """The flights from an airport, in the file's order."""
        departures = self.db.base.once("departures", departures_of)
        return [self.db["flights"][number] for number in departures.get(origin, ())] if isinstance(origin, str) else []

    def transfer_to_human_agents(self, summary: str) -> str:
        """Hand the customer over to a person, if the customer asks for one or the tools and the policy do not allow
        what the customer needs.

        Args:
            summary: what the customer needs.
        """
        return "Transfer successful"

    # ---- changes --------------------------------------------------------------------------------------------

    def book_reservation(
        self,
        user_id: str,
        origin: str,
        destination: str,
        flight_type: str,
        cabin: str,
        flights: list[dict[str, str]],
        passengers: list[dict[str, str]],
        payment_methods: list[dict[str, Any]],
        total_baggages: int,
        nonfree_baggages: int,
        insurance: str,
    ) -> str:
        """Book flights for a customer.

        Args:
            user_id: such as "sara_doe_496".
            origin: the airport's three letters.
            destination: the airport's three letters.
            flight_type: "one_way" or "round_trip".
            cabin: "basic_economy", "economy" or "business".
            flights: each with flight_number and date.
            passengers: each with first_name, last_name and dob (YYYY-MM-DD).
            payment_methods: each with payment_id and amount; the amounts add up to the price.
            total_baggages: number of bags.
            nonfree_baggages: number of bags that are paid for.
            insurance: "yes" or "no".
        """
        legs = _made(FlightInfo, flights)
        people = _made(Passenger, passengers)
        payments = _made(Payment, payment_methods)
        self._user(user_id)
        terms = {"origin": origin, "destination": destination, "flight_type": flight_type, "cabin": cabin}
        bags = {"total_baggages": total_baggages, "nonfree_baggages": nonfree_baggages}
        reservation = self._new_reservation(user_id, people, payments, terms | bags | {"insurance": insurance})
        total = 0
        for leg in legs:
            flight, price = self._seat(leg.flight_number, leg.date, cabin, len(people))
            reservation["flights"].append(_leg(flight, leg.flight_number, leg.date, price))
            total += price * len(people)
        if insurance == "yes":
            total += 30 * len(people)
        total += 50 * nonfree_baggages
        self._pay(user_id, payments, total)
        for leg in legs:
            day = self.db["flights"].edit(leg.flight_number)["dates"][leg.date]
            day["available_seats"][cabin] -= len(people)
        self.db["reservations"][reservation["reservation_id"]] = reservation
        self.db["users"].edit(user_id)["reservations"].append(reservation["reservation_id"])
        return json.dumps(reservation)

    def _new_reservation(
        self, user_id: str, people: list[Passenger], payments: list[Payment], terms: Mapping[str, Any]
    ) -> Record:
        """A reservation without flights that is not in the database yet. Raises ValueError."""
        for reservation_id in NEW_RESERVATIONS:
            if reservation_id not in self.db["reservations"]:
                who = {"reservation_id": reservation_id, "user_id": user_id, "passengers": people}
                rest = {"flights": [], "payment_history": payments, "created_at": NOW}
                return Reservation.model_validate({**who, **rest, **terms}).model_dump()
        raise self.refusal("Too many reservations")

    def _pay(self, user_id: str, payments: list[Payment], total: int) -> None:
        methods = self._user(user_id)["payment_methods"]
        for payment in payments:
            if payment.payment_id not in methods:
                raise self.refusal(f"Payment method {payment.payment_id} not found")
            method = methods[payment.payment_id]
            if method["source"] in {"gift_card", "certificate"} and method["amount"] < payment.amount:
                raise self.refusal(f"Not enough balance in payment method {payment.payment_id}")
        paid = sum(payment.amount for payment in payments)
        if paid != total:
            raise self.refusal(f"Payment amount does not add up, total price is {total}, but paid {paid}")
        methods = self.db["users"].edit(user_id)["payment_methods"]
        for payment in payments:
            source = methods[payment.payment_id]["source"]
            if source == "gift_card":
                methods[payment.payment_id]["amount"] -= payment.amount
            elif source == "certificate":
                methods.pop(payment.payment_id)

    def cancel_reservation(self, reservation_id: str) -> str:
        """Cancel a whole reservation and refund it.

        Args:
            reservation_id: such as "ZFA04Y".
        """
        self._reservation(reservation_id)
        reservation = self.db["reservations"].edit(reservation_id)
        history = reservation["payment_history"]
        history.extend([{"payment_id": paid["payment_id"], "amount": -paid["amount"]} for paid in history])
        reservation["status"] = "cancelled"
        return json.dumps(reservation)

    def send_certificate(self, user_id: str, amount: int) -> str:
        """Give a customer a certificate.

        Args:
            user_id: such as "sara_doe_496".
            amount: its worth in dollars.
        """
        methods = self._user(user_id)["payment_methods"]
        for payment_id in NEW_CERTIFICATES:
            if payment_id not in methods:
                certificate = Certificate(id=payment_id, amount=amount, source="certificate")
                self.db["users"].edit(user_id)["payment_methods"][payment_id] = certificate.model_dump()
                return f"Certificate {payment_id} added to user {user_id} with amount {amount}."
        raise self.refusal("Too many certificates")

    def _charged(self, user_id: str, payment_id: str, total: int) -> list[Record]:
        """Take the price of a change from a gift card; the payment to note, none if it costs nothing."""
        methods = self._user(user_id)["payment_methods"]
        if payment_id not in methods:
            raise self.refusal("Payment method not found")
        source = methods[payment_id]["source"]
        if source == "certificate":
            raise self.refusal("Certificate cannot be used to update reservation")
        if source == "gift_card":
            if methods[payment_id]["amount"] < total:
                raise self.refusal("Gift card balance is not enough")
            self.db["users"].edit(user_id)["payment_methods"][payment_id]["amount"] -= total
        return [self._payment(payment_id, total)] if total != 0 else []

    def _payment(self, payment_id: str, amount: int) -> Record:
        return Payment(payment_id=payment_id, amount=amount).model_dump()

    def update_reservation_baggages(
        self, reservation_id: str, total_baggages: int, nonfree_baggages: int, payment_id: str
    ) -> str:
        """Change the number of bags of a reservation.

        Args:
            reservation_id: such as "ZFA04Y".
            total_baggages: new number of bags.
            nonfree_baggages: new number of bags that are paid for.
            payment_id: pays what it costs; from the customer's payment methods.
        """
        held = self._reservation(reservation_id)
        total = 50 * max(0, nonfree_baggages - held["nonfree_baggages"])
        payments = self._charged(held["user_id"], payment_id, total)
        reservation = self.db["reservations"].edit(reservation_id)
        reservation["payment_history"].extend(payments)
        reservation["total_baggages"] = total_baggages
        reservation["nonfree_baggages"] = nonfree_baggages
        return json.dumps(reservation)

    def update_reservation_flights(
        self, reservation_id: str, cabin: str, flights: list[dict[str, str]], payment_id: str
    ) -> str:
        """Change the flights or the cabin of a reservation.

        Args:
            reservation_id: such as "ZFA04Y".
            cabin: "basic_economy", "economy" or "business".
            flights: all flights of the changed reservation, also those that stay, each with flight_number and date.
            payment_id: pays what it costs; from the customer's payment methods.
        """
        infos = _made(FlightInfo, flights)
        held = self._reservation(reservation_id)
        self._user(held["user_id"])
        passengers, total, legs = len(held["passengers"]), 0, []
        for info in infos:
            leg = next((flight for flight in held["flights"] if _stays(flight, info, cabin == held["cabin"])), None)
            if leg is None:
                flight, price = self._seat(info.flight_number, info.date, cabin, passengers)
                leg = _leg(flight, info.flight_number, info.date, price)
            total += leg["price"] * passengers
            legs.append(dict(leg))
        total -= sum(flight["price"] for flight in held["flights"]) * passengers
        payments = self._charged(held["user_id"], payment_id, total)
        reservation = self.db["reservations"].edit(reservation_id)
        reservation["payment_history"].extend(payments)
        reservation["flights"] = legs
        reservation["cabin"] = cabin
        return json.dumps(reservation)

    def update_reservation_passengers(self, reservation_id: str, passengers: list[dict[str, str]]) -> str:
        """Change the passengers of a reservation, but not their number.

        Args:
            reservation_id: such as "ZFA04Y".
            passengers: each with first_name, last_name and dob (YYYY-MM-DD).
        """
        people = _made(Passenger, passengers)
        if len(people) != len(self._reservation(reservation_id)["passengers"]):
            raise self.refusal("Number of passengers does not match")
        written = [one.model_dump() if isinstance(one, Passenger) else one for one in people]
        self.db["reservations"].edit(reservation_id)["passengers"] = written
        return self.db["reservations"].shown(reservation_id)


def _made(model: Any, given: Any) -> Any:
    """Objects of a model; what is not all objects stays as it is, to fail where it is used."""
    return [model(**one) for one in given] if all(isinstance(one, dict) for one in given) else given


def _leg(flight: Record, number: str, date: str, price: int) -> Record:
    route = {"origin": flight["origin"], "destination": flight["destination"]}
    return ReservationFlight(flight_number=number, date=date, price=price, **route).model_dump()


def _stays(flight: Record, info: FlightInfo, same_cabin: bool) -> bool:
    return flight["flight_number"] == info.flight_number and flight["date"] == info.date and same_cabin


def _direct_flight(flight: Record, date: str) -> Record:
    day = flight["dates"][date]
    return {
        "flight_number": flight["flight_number"],
        "origin": flight["origin"],
        "destination": flight["destination"],
        "status": "available",
        "scheduled_departure_time_est": flight["scheduled_departure_time_est"],
        "scheduled_arrival_time_est": flight["scheduled_arrival_time_est"],
        "date": None,
        "available_seats": day["available_seats"],
        "prices": day["prices"],
    }


def departures_of(tables: Mapping[str, Any]) -> dict[str, list[str]]:
    """Origin -> numbers of the flights, in the file's order."""
    departures: dict[str, list[str]] = {}
    for number, flight in tables["flights"].items():
        departures.setdefault(flight["origin"], []).append(number)
    return departures


TOOLS = tuple(name for name in vars(AirlineTools) if name.islower() and not name.startswith("_"))
