"""The examples in the docstrings of credit and objectives."""

import doctest
import importlib
import pkgutil

import pytest

PLACES = ["audit", "credit", "play", "learn"]


def _modules() -> list[str]:
    names = []
    for place in PLACES:
        module = importlib.import_module(f"manyturn.trainers.{place}")
        names.append(module.__name__)
        names.extend(
            found.name for found in pkgutil.walk_packages(getattr(module, "__path__", []), f"{module.__name__}.")
        )
    return names


@pytest.mark.parametrize("name", _modules())
def test_examples_of(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0
