"""Formats of other programs: a file for each."""
