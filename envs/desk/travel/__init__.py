"""An airline's desk for bookings."""
