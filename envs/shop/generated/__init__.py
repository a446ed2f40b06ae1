"""A shop generated from a seed: its goods, what customers want of them, and how they say it."""
