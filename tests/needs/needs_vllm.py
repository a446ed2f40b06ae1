"""vLLM, which is in an environment of its own: its tests run there, by ``make test-vllm``."""

from importlib.util import find_spec

import pytest
from needs import absent


@pytest.fixture(scope="session")
def vllm_package() -> None:
    """Skips where vLLM is not installed; MANYTURN_REQUIRE_VLLM=1 fails the test there."""
    if find_spec("vllm") is None:
        absent("VLLM", "vLLM is missing: make test-vllm runs its tests in an environment of their own")
