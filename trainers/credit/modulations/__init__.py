"""Weighted by what: functions from advantages to advantages, one per file."""
