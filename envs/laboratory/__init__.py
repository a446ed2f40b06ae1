"""A laboratory of rooms, where matter changes, living things grow, and time passes with each command."""
