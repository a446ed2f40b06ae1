"""A sandbox for all tests of a module."""

from collections.abc import Iterator

import pytest

from manyturn.containers.docker.docker_sandbox import DockerSandbox
from manyturn.containers.pool import lease


@pytest.fixture(scope="module")
def sandbox(engine: str) -> Iterator[DockerSandbox]:
    with lease() as sandbox:
        yield sandbox
