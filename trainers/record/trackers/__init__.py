"""Loggers and experiment trackers."""
