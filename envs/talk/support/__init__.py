"""Emotional support, scored by rules: it tests the mechanics of such a talk, not empathy."""
