"""Grades of a patch: the tests that decide, and the challenge with other inputs that confirms them."""
