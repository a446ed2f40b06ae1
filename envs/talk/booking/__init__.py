"""Booking tables and rooms for a user with an agenda, by talking and by tool calls."""
