"""Images that stand in for SWE-bench's."""

import uuid
from collections.abc import Iterator

import pytest
from standin import Standin


@pytest.fixture(scope="session")
def standin(engine: str) -> Iterator[Standin]:
    made = Standin(engine, f"manyturn-standin:{uuid.uuid4().hex[:12]}")
    yield made
    made.remove()
