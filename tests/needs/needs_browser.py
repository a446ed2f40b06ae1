"""The fixture ``chromium`` for tests in a browser."""

from typing import Any

import pytest
from needs import absent

from manyturn.envs.contract.registration.env_registry import NeedsSetup
from manyturn.envs.web.chromium import launch_options, require_browser


@pytest.fixture(scope="session")
def chromium() -> dict[str, Any]:
    """Options with which Playwright launches Chromium; MANYTURN_REQUIRE_BROWSER=1 fails the test without one."""
    try:
        require_browser()
        return launch_options()
    except NeedsSetup as reason:
        absent("BROWSER", f"no browser: {reason}")
