"""Environments of other packages: TextArena's games and reasoning-gym's data sets."""
