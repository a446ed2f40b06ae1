"""Forecast of a whole run before it begins, from a trial of its own configuration, and while its first steps end."""
