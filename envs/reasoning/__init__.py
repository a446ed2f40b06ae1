"""Datasets of the package reasoning-gym, by the id ``reasoning-gym:NAME``."""
