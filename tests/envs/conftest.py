"""Chromium for the tests of environments in a browser."""

import os

import pytest

from manyturn.envs.registry import NeedsSetup
from manyturn.envs.web.chromium import require_browser


@pytest.fixture(scope="session")
def chromium() -> None:
    """Skips visibly where there is no browser, and fails where MANYTURN_REQUIRE_BROWSER=1 says that there is one."""
    try:
        require_browser()
    except NeedsSetup as reason:
        if os.environ.get("MANYTURN_REQUIRE_BROWSER") == "1":
            pytest.fail(f"MANYTURN_REQUIRE_BROWSER=1, but {reason}")
        pytest.skip(str(reason))
