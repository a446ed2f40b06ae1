"""Guidance: words that later attempts of a group read where all earlier ones failed."""
