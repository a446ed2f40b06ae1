"""A sandbox for the tests of a module, emptied before each."""

from collections.abc import Iterator

import pytest

from manyturn.containers.container_engine import ContainerEngine, client
from manyturn.containers.docker_sandbox import DockerSandbox
from manyturn.containers.inside.archive import pack
from manyturn.containers.sandbox import SandboxLimits, Snapshot

EMPTY = Snapshot(*pack([]))


@pytest.fixture(scope="module")
def started(engine: str) -> Iterator[DockerSandbox]:
    found = DockerSandbox(
        ContainerEngine(image=engine, limits=SandboxLimits(memory_mb=256, workspace_mb=8, scratch_mb=8, files=2000))
    )
    found.start()
    yield found
    found.stop()


@pytest.fixture
def sandbox(started: DockerSandbox) -> DockerSandbox:
    started.restore(EMPTY)
    return started


def is_there(name: str) -> bool:
    """Whether the engine has a container of this name."""
    return bool(client().containers(all=True, filters={"name": name}))
