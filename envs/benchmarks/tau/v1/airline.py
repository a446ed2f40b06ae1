"""tau-bench's airline desk: 14 tools over flights, reservations and users.

Rules, messages and quirks are the original's (tau_bench/envs/airline/tools, MIT). They are those of tau2-bench but for
what stands here: records are not checked, seats are never taken, a changed cabin is not written down, and a one-stop
connection on the next day shows the first day's seats.
"""

import json
from typing import Any

from manyturn.envs.benchmarks.tau.database import Record, copied
from manyturn.envs.benchmarks.tau.v1.retail import TauBenchTools
from manyturn.envs.benchmarks.tau.v2 import airline
from manyturn.envs.benchmarks.tau.v2.airline import AIRPORTS, NEW_CERTIFICATES, NEW_RESERVATIONS, NOW

Records = list[dict[str, Any]]


class AirlineTools(TauBenchTools, airline.AirlineTools):
    """The agent's tools; ``WRITES`` change the database."""

    def _user(self, user_id: str) -> Record:
        if user_id not in self.db["users"]:
            raise self.refusal("User not found")
        return self.db["users"][user_id]

    def _reservation(self, reservation_id: str) -> Record:
        if reservation_id not in self.db["reservations"]:
            raise self.refusal("Reservation not found")
        return self.db["reservations"][reservation_id]

    def _payment(self, payment_id: str, amount: int) -> Record:
        return {"payment_id": payment_id, "amount": amount}

    # ---- look-ups -------------------------------------------------------------------------------------------

    def get_reservation_details(self, reservation_id: str) -> str:
        if reservation_id not in self.db["reservations"]:
            raise self.refusal("User not found")
        return self.db["reservations"].shown(reservation_id)

    def list_all_airports(self) -> str:
        return json.dumps(AIRPORTS)

    def search_direct_flight(self, origin: str, destination: str, date: str) -> str:
        flights = [flight for flight in self._leaving(origin) if flight["destination"] == destination]
        return json.dumps(
            [
                _shown(flight, date)
                for flight in flights
                if date in flight["dates"] and flight["dates"][date]["status"] == "available"
            ]
        )

    def search_onestop_flight(self, origin: str, destination: str, date: str) -> str:
        pairs = []
        for first in self._leaving(origin):
            arrival = first["scheduled_arrival_time_est"]
            for second in self._leaving(first["destination"]):
                if second["destination"] != destination:
                    continue
                next_date = f"2024-05-{int(date[-2:]) + 1}" if "+1" in arrival else date
                if arrival > second["scheduled_departure_time_est"]:
                    continue
                if date in first["dates"] and next_date in second["dates"]:
                    states = first["dates"][date]["status"], second["dates"][next_date]["status"]
                    if states == ("available", "available"):
                        pairs.append((_shown(first, date) | {"date": date}, _shown(second, date) | {"date": next_date}))
        return json.dumps(pairs)

    # ---- changes --------------------------------------------------------------------------------------------

    def book_reservation(
        self,
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
        reservations = self.db["reservations"]
        self._user(user_id)
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
        for leg in reservation["flights"]:
            total += self._priced(leg, cabin, len(passengers)) * len(passengers)
        if insurance == "yes":
            total += 30 * len(passengers)
        total += 50 * nonfree_baggages
        self._pay_with(user_id, payment_methods, total)
        reservations[reservation_id] = reservation
        self.db["users"].edit(user_id)["reservations"].append(reservation_id)
        return json.dumps(reservation)

    def _priced(self, leg: Record, cabin: str, passengers: int) -> int:
        """The price of a seat, in dollars, which is written into the leg with its route. Raises ValueError."""
        flight, price = self._seat(leg["flight_number"], leg["date"], cabin, passengers)
        leg |= {"price": price, "origin": flight["origin"], "destination": flight["destination"]}
        return price

    def _pay_with(self, user_id: str, payments: Records, total: int) -> None:
        methods = self._user(user_id)["payment_methods"]
        for payment in payments:
            payment_id, amount = payment["payment_id"], payment["amount"]
            if payment_id not in methods:
                raise self.refusal(f"Payment method {payment_id} not found")
            method = methods[payment_id]
            if method["source"] in ("gift_card", "certificate") and method["amount"] < amount:
                raise self.refusal(f"Not enough balance in payment method {payment_id}")
        paid = sum(payment["amount"] for payment in payments)
        if paid != total:
            raise self.refusal(f"Payment amount does not add up, total price is {total}, but paid {paid}")
        methods = self.db["users"].edit(user_id)["payment_methods"]
        for payment in payments:
            source = methods[payment["payment_id"]]["source"]
            if source == "gift_card":
                methods[payment["payment_id"]]["amount"] -= payment["amount"]
            elif source == "certificate":
                del methods[payment["payment_id"]]

    def send_certificate(self, user_id: str, amount: int) -> str:
        self._user(user_id)
        methods = self.db["users"].edit(user_id)["payment_methods"]
        for payment_id in NEW_CERTIFICATES:
            if payment_id not in methods:
                methods[payment_id] = {"source": "certificate", "amount": amount, "id": payment_id}
                return f"Certificate {payment_id} added to user {user_id} with amount {amount}."
        return str(None)  # a fourth certificate: the original says nothing and gives none

    def update_reservation_flights(self, reservation_id: str, cabin: str, flights: Records, payment_id: str) -> str:
        held = self._reservation(reservation_id)
        passengers, total, legs = len(held["passengers"]), 0, copied(flights)
        for leg in legs:
            same = [
                flight
                for flight in held["flights"]
                if (flight["flight_number"], flight["date"]) == (leg["flight_number"], leg["date"])
                and cabin == held["cabin"]
            ]
            if same:
                leg |= {name: same[0][name] for name in ("price", "origin", "destination")}
            else:
                self._priced(leg, cabin, passengers)
            total += leg["price"] * passengers
        total -= sum(flight["price"] for flight in held["flights"]) * passengers
        payments = self._charged(held["user_id"], payment_id, total)
        reservation = self.db["reservations"].edit(reservation_id)
        reservation["flights"] = legs
        reservation["payment_history"].extend(payments)
        return json.dumps(reservation)

    def update_reservation_passengers(self, reservation_id: str, passengers: Records) -> str:
        if len(passengers) != len(self._reservation(reservation_id)["passengers"]):
            raise self.refusal("Number of passengers does not match")
        self.db["reservations"].edit(reservation_id)["passengers"] = copied(passengers)
        return self.db["reservations"].shown(reservation_id)


def _shown(flight: Record, date: str) -> Record:
    """A flight on a date, without its other dates."""
    return {key: value for key, value in flight.items() if key != "dates"} | flight["dates"][date]


TOOLS = tuple(sorted({*airline.TOOLS, "think"} - {"get_flight_status"}))
