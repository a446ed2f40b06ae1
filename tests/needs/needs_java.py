"""Engines of other projects that run in Java."""

from importlib.util import find_spec

import pytest
from needs import absent

from manyturn.envs.benchmarks.java_process import java_program
from manyturn.envs.contract.registration.env_registry import NeedsSetup

NO_JAVA = "there is no Java runtime: install one, such as Debian's default-jre-headless"


def java_package(package: str, extra: str) -> None:
    """Skip unless a package and Java are installed."""
    if find_spec(package) is None:
        pytest.skip(f"the package {package} is not installed: pip install 'manyturn[{extra}]'")
    try:
        java_program()
    except NeedsSetup:
        absent("JAVA", NO_JAVA)
