"""Readings of a step before its updates: log-probabilities, reference, belief."""
