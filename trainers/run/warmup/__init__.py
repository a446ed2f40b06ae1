"""Warm-up by imitation before the first step."""
