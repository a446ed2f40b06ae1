"""A sandbox for the tests of a module, emptied before each."""

from collections.abc import Iterator

import pytest

from manyturn.containers.docker.docker_sandbox import DockerSandbox
from manyturn.containers.engine.container_engine import ContainerEngine, client
from manyturn.containers.inside.archive import pack
from manyturn.containers.sandbox import SandboxLimits, Snapshot

EMPTY = Snapshot(*pack([]))
NOBODYS_MEMORY = (
    "for f in /proc/self /proc/$$ /proc/1; do echo 0 > $f/oom_score_adj; done 2>/dev/null;"
    "[ $(uname -m) = aarch64 ] && create=279 || create=319; export create; exec perl -e '"
    "open my $o, q(>), qq(/proc/$$/oom_score_adj) and do { print $o 0; close $o };"
    "my $n = qq(x\\0); while (1) { my $f = syscall($ENV{create} + 0, $n, 0); open my $h, q(>&=), $f; push @h, $h;"
    " for (1..8) { syswrite $h, qq(x) x 1048576 } }'"
)
"""Takes memory that counts for no process, so that the tool server is the largest, and lowers its own score."""


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
