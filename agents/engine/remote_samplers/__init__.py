"""Engines in processes elsewhere, which draw a run's tokens: what ``manyturn sampler`` starts, and who asks it."""
