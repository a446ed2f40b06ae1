"""Trainers of others, each of which is in an environment of its own: ``make interop`` runs their tests there."""

from importlib.util import find_spec

from needs import absent


def host(module: str) -> None:
    """Skips where the trainer is not installed; MANYTURN_REQUIRE_<MODULE>=1 fails the tests there."""
    found = find_spec(module)
    if found is None or found.origin is None:  # a folder of tests may have its name
        absent(module.upper(), f"{module} is missing: make interop runs its tests in an environment of their own")
