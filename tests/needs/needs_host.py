"""Trainers of others, each of which is in an environment of its own: ``make interop`` runs their tests there."""

from importlib.util import find_spec

from needs import absent


def host(module: str) -> None:
    """Skips where the trainer is not installed; MANYTURN_REQUIRE_<MODULE>=1 fails the tests there."""
    if find_spec(module) is None:
        absent(module.upper(), f"{module} is missing: make interop runs its tests in an environment of their own")
