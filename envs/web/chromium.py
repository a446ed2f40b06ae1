"""Path and start of Chromium, so that nothing leaves this machine."""

import importlib.util
import os
import shutil
from typing import Any

from manyturn.envs.contract.registration.env_registry import NeedsSetup

VARIABLE = "MANYTURN_CHROMIUM"
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_ARGUMENTS = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
)


def find_chromium() -> str:
    """The program's path. Raises NeedsSetup."""
    named = os.environ.get(VARIABLE)
    path = shutil.which(named) if named else next(filter(None, map(shutil.which, _NAMES)), None)
    if path is None:
        why = f"{VARIABLE}={named} is no program" if named else "there is no Chromium on the path"
        raise NeedsSetup(f"{why}: install Chromium, or set {VARIABLE}=/path/to/chromium")
    return path


def require_browser() -> None:
    """Raise NeedsSetup unless Playwright, the web server and Chromium are there; starts nothing."""
    for package in ("playwright", "starlette", "uvicorn"):
        if importlib.util.find_spec(package) is None:
            raise NeedsSetup(f"{package} is not installed: pip install 'manyturn[web]', and a Chromium")
    find_chromium()


def launch_options() -> dict[str, Any]:
    """Arguments of Playwright's ``launch``. Raises NeedsSetup."""
    return {
        "executable_path": find_chromium(),
        "args": _ARGUMENTS,
        "chromium_sandbox": os.geteuid() != 0,  # the sandbox refuses to work for root
        "handle_sigint": False,  # an episode that is being played may end first
        "handle_sigterm": False,
        "handle_sighup": False,
    }
