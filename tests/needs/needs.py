"""What tests need from outside the clone: each thing is found, fetched or started, or the test is skipped."""

import importlib
import os
from types import ModuleType
from typing import NoReturn

import pytest


def absent(thing: str, reason: str) -> NoReturn:
    """Skip the test; fail it where MANYTURN_REQUIRE_<THING>=1 says that the thing is there.

    Args:
        thing: one word in capitals.
        reason: one line, the same for all tests that lack the thing: the summary counts skips by it.
    """
    if os.environ.get(f"MANYTURN_REQUIRE_{thing}") == "1":
        pytest.fail(f"MANYTURN_REQUIRE_{thing}=1, but {reason}")
    pytest.skip(reason)


NO_PEERS = "packages to compare with are missing: make test-all installs them"


def peer(module: str) -> ModuleType:
    """A module of another project, with whose answers ours are compared; skips where it is not installed."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError:
        absent("PEERS", NO_PEERS)
