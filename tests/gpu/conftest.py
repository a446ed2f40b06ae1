"""The device of these tests: a GPU, and without one they are skipped; ``--device cpu`` runs them anyway."""

from collections.abc import Iterator

import pytest
import torch


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--device", choices=("cuda", "cpu"), default="cuda", help="device of tests/gpu")


@pytest.fixture
def device(request: pytest.FixtureRequest) -> Iterator[torch.device]:
    """The device, which gets its memory back afterwards."""
    wanted = request.config.getoption("--device", "cuda")  # the option is known where this folder was named
    if wanted == "cuda" and not torch.cuda.is_available():
        pytest.skip("no GPU here")
    yield torch.device(str(wanted))
    if wanted == "cuda":
        torch.cuda.empty_cache()
