"""The examples in the docstrings."""

import doctest
import importlib

import pytest

pytestmark = pytest.mark.versions


@pytest.mark.parametrize("name", ["calls", "tool_prompt"])
def test_examples_of(name: str) -> None:
    found = doctest.testmod(importlib.import_module(f"manyturn.envs.tools.{name}"))
    assert found.attempted and not found.failed
