"""Worlds with known truth: walks in which it is clear which turns matter, and by how much, in closed form."""
