"""Simulated users: one protocol, and users by rules, by agenda, by language model and from recordings."""
