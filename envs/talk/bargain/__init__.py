"""Bargaining over a price, or over who gets which things: against a simulated user, or both sides by policies."""
