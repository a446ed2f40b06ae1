"""Batch of turns, and the figures that are read off it."""
