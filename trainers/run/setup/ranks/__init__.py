"""Ranks of a run: how they begin, how a run hears that one has ended, and those that a run starts itself."""
