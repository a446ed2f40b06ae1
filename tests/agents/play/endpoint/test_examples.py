"""Examples in docstrings that no longer hold."""

import doctest
import importlib

import pytest


@pytest.mark.parametrize("module", ["client", "options", "tokens", "tool_calls"])
def test_examples_hold(module):
    found = doctest.testmod(importlib.import_module(f"manyturn.agents.play.endpoint.{module}"))
    assert found.attempted and not found.failed
