"""Compared with what: functions from a batch of turns to an advantage per turn, one per file."""
