"""What the tests with vLLM itself share: one event loop for an engine's life, and a model that vLLM can run."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tiny_for_vllm import tiny_for_vllm

from manyturn.agents.model.language_model import LanguageModel


@pytest.fixture(scope="module")
def run() -> Iterator[Callable[[Any], Any]]:
    with asyncio.Runner() as runner:
        yield runner.run


@pytest.fixture(scope="module")
def language(maze_texts) -> LanguageModel:
    return tiny_for_vllm(maze_texts)
