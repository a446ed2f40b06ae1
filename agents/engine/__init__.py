"""Engines, which draw the tokens of replies."""
