"""Audit of credit: groups are played, and continuations of their situations give each turn's true effect."""
