"""The airline's tools."""

from collections.abc import Callable
from typing import Any, Literal

from manyturn.envs.desk.base_tools import DeskTools
from manyturn.envs.desk.database import Record
from manyturn.envs.tools.tool import ToolError

Cabin = Literal["basic", "economy", "business"]
City = Literal["Athens", "Berlin", "Cairo", "Delhi", "Lima", "Oslo", "Rome", "Tokyo"]


class TravelTools(DeskTools):
    """Bookings and the flights that they are for."""

    def reads(self) -> list[Callable[..., Any]]:
        return [self.get_booking, self.get_flight, self.search_flights]

    def writes(self) -> list[Callable[..., Any]]:
        trip = [self.cancel_booking, self.move_booking, self.set_cabin, self.set_bags]
        return [*trip, self.rename_passenger, self.add_insurance, self.give_voucher]

    def get_booking(self, booking_id: str) -> Record:
        """Show a booking with the route of its flight.

        Args:
            booking_id: such as B12.
        """
        booking = self._show("bookings", booking_id)
        flight = self.store["flights", booking["flight_id"]]
        return {**booking, "route": f"{flight['origin']} to {flight['destination']}", "day": flight["day"]}

    def get_flight(self, flight_id: str) -> Record:
        """Show a flight: route, day of the month, free seats in each cabin, and whether it is delayed.

        Args:
            flight_id: such as F12.
        """
        return self.store.find("flights", flight_id)

    def search_flights(self, origin: City, destination: City) -> list[Record]:
        """List the flights of a route.

        Args:
            origin: city of departure.
            destination: city of arrival.
        """
        flights = self.store.tables.records["flights"].items()
        return [
            {"flight_id": key, "day": flight["day"], "free_seats": flight["free_seats"]}
            for key, flight in flights
            if (flight["origin"], flight["destination"]) == (origin, destination)
        ]

    def cancel_booking(self, booking_id: str) -> Record:
        """Cancel a booking and refund it.

        Args:
            booking_id: such as B12.
        """
        return self._set("bookings", "booking_id", booking_id, status="cancelled")

    def move_booking(self, booking_id: str, flight_id: str) -> Record:
        """Move a booking to another flight, in the same cabin.

        Args:
            booking_id: such as B12.
            flight_id: the new flight, such as F12.
        """
        self.store.find("flights", flight_id)
        return self._set("bookings", "booking_id", booking_id, flight_id=flight_id)

    def set_cabin(self, booking_id: str, cabin: Cabin) -> Record:
        """Change the cabin of a booking.

        Args:
            booking_id: such as B12.
            cabin: the new cabin.
        """
        return self._set("bookings", "booking_id", booking_id, cabin=cabin)

    def set_bags(self, booking_id: str, bags: int) -> Record:
        """Set the total number of checked bags of a booking.

        Args:
            booking_id: such as B12.
            bags: from 0 to 20.
        """
        if not 0 <= bags <= 20:
            raise ToolError("bags must be from 0 to 20")
        return self._set("bookings", "booking_id", booking_id, bags=bags)

    def rename_passenger(self, booking_id: str, old_name: str, new_name: str) -> Record:
        """Replace a passenger.

        Args:
            booking_id: such as B12.
            old_name: the passenger in the booking.
            new_name: the new passenger.
        """
        passengers = self.store.find("bookings", booking_id)["passengers"]
        if old_name not in passengers:
            raise ToolError(f"booking {booking_id} has no passenger {old_name!r:.80}")
        renamed = tuple(new_name if name == old_name else name for name in passengers)
        self.store.change("bookings", booking_id, passengers=renamed, renamed=True)
        return {"booking_id": booking_id, "passengers": renamed}

    def add_insurance(self, booking_id: str) -> Record:
        """Insure a booking.

        Args:
            booking_id: such as B12.
        """
        return self._set("bookings", "booking_id", booking_id, insured=True)

    def give_voucher(self, booking_id: str) -> Record:
        """Give the customer a voucher for a booking.

        Args:
            booking_id: such as B12.
        """
        return self._set("bookings", "booking_id", booking_id, voucher=True)
