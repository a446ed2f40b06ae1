"""Inspect's viewer, which shows nothing of a log that it cannot open."""

import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest
from needs_host import host  # pyright: ignore[reportMissingImports]

from manyturn.agents.trajectories.conversation import of_exchanges
from manyturn.agents.trajectories.formats import inspect_logs

FOUND = [
    of_exchanges(
        [("You are in the hall.", "open the red door"), ("It opens.", f"go in {number}")],
        "x",
        "Open all doors.",
        last="All doors are open.",
        task=f"train/{number}",
        success=bool(number),
        **{"return": float(number)},
    )
    for number in range(2)
]


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format, *args):
        pass


@pytest.fixture
def viewer(tmp_path):
    """The address of the viewer with a log of ours, as ``inspect view bundle`` writes it."""
    host("inspect_ai")
    from inspect_ai.log import bundle_log_dir

    inspect_logs.write(tmp_path / "logs", FOUND)
    bundle_log_dir(log_dir=str(tmp_path / "logs"), output_dir=str(tmp_path / "viewer"))
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path / "viewer")))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def until(page, *texts):
    """What the page says as soon as it says all of these; it loads in steps, and lets nobody evaluate a condition."""
    for _ in range(400):
        body = page.inner_text("body")
        if all(text in body for text in texts):
            return body
        page.wait_for_timeout(250)
    pytest.fail(f"no {texts} in {page.inner_text('body')[:2000]}")


def test_it_shows_our_samples_with_their_messages_and_scores(viewer, chromium):
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(**chromium)
        page = browser.new_page(viewport={"width": 1366, "height": 900})
        page.set_default_timeout(100_000)
        page.goto(viewer)
        until(page, "imported/train/0", "imported/train/1", "SUCCESS", "RETURN", "2 Samples")
        page.get_by_text("imported/train/1").click()
        opened = until(page, "Sample imported/train/1", "All doors are open.")
        places = [opened.index(text) for text in ("open the red door", "It opens.", "go in 1", "All doors are open.")]
        assert places == sorted(places)
        browser.close()
