"""The fixture ``engine`` for tests that start containers."""

import fcntl
import os
import tempfile
from pathlib import Path

import pytest
from needs import absent

from manyturn.containers.engine.images import NAME, build, resolve
from manyturn.containers.sandbox import EngineUnavailable


@pytest.fixture(scope="session")
def engine() -> str:
    """The name of an image on an engine that answers.

    With MANYTURN_REQUIRE_ENGINE=1 a missing image is made, and a missing engine fails the test.
    """
    try:
        if os.environ.get("MANYTURN_REQUIRE_ENGINE") == "1":
            _build()
        resolve(NAME)
    except (EngineUnavailable, ModuleNotFoundError) as reason:
        absent("ENGINE", str(reason))
    return NAME


def _build() -> None:
    """Once, however many processes run the tests."""
    lock = Path(tempfile.gettempdir()) / f"manyturn-images-{os.getuid()}.lock"
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        build()
