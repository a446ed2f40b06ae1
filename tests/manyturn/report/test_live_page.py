"""The live page before a server on loopback: it keeps its token, its place and its calm while a run grows."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import ModuleType
from typing import Any

import pytest

from manyturn.report.page import live_page

pytestmark = pytest.mark.versions


class Run:
    """What a server would serve of a run that grows."""

    token = "a-token_1"

    def __init__(self, documents: ModuleType) -> None:
        (self.whole, self.traces), self.chunked = documents.run_report(), documents.chunked
        self.state, self.unchanged, self.refused = 0, 0, 0
        self.episodes = slice(0, 12)

    def document(self) -> dict[str, Any]:
        columns = {name: values[self.episodes] for name, values in self.whole["episodes"].items()}
        return {**self.whole, "episodes": columns, "done": False}

    def chunk(self, number: int) -> list[dict[str, Any]]:
        return list(self.chunked(self.traces[self.episodes]))[number]


@contextmanager
def serving(run: Run) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/":
                self.answer(200, live_page().encode(), "text/html; charset=utf-8")
            elif self.headers["X-Manyturn-Token"] != run.token:
                run.refused += 1
                self.answer(403, b"", "text/plain")
            elif self.path == "/api/document" and self.headers["If-None-Match"] == f'"{run.state}"':
                run.unchanged += 1
                self.answer(304, b"", "application/json")
            elif self.path == "/api/document":
                self.answer(200, json.dumps(run.document()).encode(), "application/json")
            else:
                chunk = run.chunk(int(self.path.removeprefix("/api/chunk/")))
                self.answer(200, json.dumps(chunk).encode(), "application/json")

        def answer(self, status: int, body: bytes, kind: str) -> None:
            self.send_response(status)
            self.send_header("ETag", f'"{run.state}"')
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """A test prints no log."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.deep
def test_a_live_page_follows_a_run_keeps_the_selection_and_says_when_the_server_has_gone(opened, documents):
    run, report = Run(documents), documents.run_report()
    with serving(run) as address:
        seen = opened(address, fragment=f"#token={run.token}")
        page = seen.page
        assert run.token not in page.url
        assert "growing" in page.locator("#status").inner_text()
        seen.follow(documents.address_of(report, 8, 3))
        page.keyboard.press("j")
        seen.until("location.hash.endsWith('t=4')")
        run.episodes, run.state = slice(6, 24), 1  # twelve more, and the first group is too old to be shown
        page.get_by_text("18 of 18").wait_for()
        assert seen.turn() == 4
        assert page.locator(".exchange .block").first.inner_text() == report[1][8]["observations"][3]
        assert page.locator(".rows li:has([aria-current])").get_attribute("aria-posinset") == "3"
        page.wait_for_timeout(2200)
        assert page.locator(".group tr.here a").get_attribute("href") == documents.address_of(report, 8)
        assert run.unchanged > 0 and run.refused == 0 and seen.complaints == []
        page.reload()  # the token is remembered in this tab, and the address leads back
        page.wait_for_selector(".group")
        assert seen.turn() == 4 and run.refused == 0
        assert {url.split("/")[2] for url in seen.requests if url.startswith("http")} == {address.split("/")[2]}
    page.wait_for_selector("#status.gone")
    assert "server has gone" in page.locator("#status").inner_text()
    assert seen.turn() == 4


def test_a_live_page_without_the_token_says_what_to_open(opened, documents):
    with serving(Run(documents)) as address:
        seen = opened(address, fragment="#token=wrong")
        assert "address that manyturn view printed" in seen.page.locator("#overview .fault").inner_text()
