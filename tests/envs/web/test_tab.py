"""A page that reaches beyond what it may, opens windows, waits for an answer, or takes the browser along."""

import http.server
import re
import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from manyturn.envs.contract.registration.env_registry import NeedsSetup
from manyturn.envs.web import browser
from manyturn.envs.web import chromium as program
from manyturn.envs.web.browser import BrowserError
from manyturn.envs.web.snapshot import read
from manyturn.envs.web.tab import Tab
from manyturn.envs.web.text_browser import Action, PageReader, parse

pytestmark = pytest.mark.versions

HOSTILE = """<!doctype html><title>t</title>
<link rel="stylesheet" href="ELSEWHERE/style.css"><link rel="preconnect" href="ELSEWHERE">
<link rel="prefetch" href="ELSEWHERE/prefetch"><link rel="icon" href="ELSEWHERE/icon">
<img src="ELSEWHERE/pixel.png"><img src="http://pixel.example/p.png"><script src="ELSEWHERE/script.js"></script>
<iframe src="ELSEWHERE/frame"></iframe><object data="ELSEWHERE/object"></object>
<video src="ELSEWHERE/video"></video>
<script>
  fetch('ELSEWHERE/fetch').catch(() => {});
  fetch('http://203.0.113.7/fetch').catch(() => {});
  navigator.sendBeacon('ELSEWHERE/beacon', 'x');
  new EventSource('ELSEWHERE/events');
  try { new WebSocket('ELSEWHERE/socket'.replace('http', 'ws')); } catch (error) {}
  try { new Worker('ELSEWHERE/worker.js'); } catch (error) {}
  window.open('ELSEWHERE/window');
  alert('stop'); confirm('really?');
</script>
<button onclick="location = 'ELSEWHERE/away'">Leave</button>
<button onclick="window.open('/other')">Window</button>
<button onclick="alert(1); this.textContent = prompt('name') ?? 'nobody'">Ask</button>
<a href="/file" download>Download</a>
<button onclick="setTimeout(() => { this.textContent = 'later'; }, 900)">Wait</button>
"""


class Server(http.server.ThreadingHTTPServer):
    """Serves one page under every path and counts who comes."""

    daemon_threads = True

    def __init__(self, page: str):
        self.page, self.seen = page, []
        super().__init__(("127.0.0.1", 0), Handler)
        self.origin = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.seen.append(self.path)
        body = self.server.page.encode()
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET

    def log_message(self, *_):
        """Nothing is said."""


@pytest.fixture
def hostile(chromium) -> Iterator[SimpleNamespace]:
    """A tab that may reach one server, whose page asks another for everything."""
    elsewhere = Server("<h1>elsewhere</h1>")
    server = Server(HOSTILE.replace("ELSEWHERE", elsewhere.origin))
    tab = Tab(f"{server.origin}/", scripts=True)
    tab.open(f"{server.origin}/")
    yield SimpleNamespace(tab=tab, server=server, elsewhere=elsewhere)
    tab.close()
    for one in (server, elsewhere):
        one.shutdown()
        one.server_close()


def number(tab: Tab, name: str) -> str:
    return next(control.reference for control in read(tab.snapshot()).controls if control.name == name)


@pytest.mark.deep
def test_a_hostile_page_reaches_nothing_but_its_own_server(hostile):
    tab = hostile.tab
    assert tab.click(number(tab, "Leave"))
    assert tab.address == f"{hostile.server.origin}/"
    assert tab.click(number(tab, "Window"))
    assert tab.click(number(tab, "Download"))
    assert tab.click(number(tab, "Ask"))
    assert "nobody" in tab.snapshot()
    until = time.monotonic() + 1
    while time.monotonic() < until:
        tab.value("() => 1")
    assert hostile.elsewhere.seen == [] and tab.blocked >= 8
    assert len(tab._context.pages) == 1


def test_a_second_passes_with_each_action_and_none_between(hostile):
    tab = hostile.tab
    before = tab.value("() => Date.now()")
    time.sleep(0.05)
    assert tab.value("() => Date.now()") == before
    assert tab.click(number(tab, "Wait"))
    assert tab.value("() => Date.now()") == before + 1000 and "later" in tab.snapshot()


def test_a_tab_opens_again_after_its_page_has_crashed(hostile):
    tab = hostile.tab
    with pytest.raises(BrowserError):
        tab.go("chrome://crash")
    with pytest.raises(BrowserError):
        tab.snapshot()
    tab.open(f"{hostile.server.origin}/")
    assert "Leave" in tab.snapshot()


@pytest.mark.deep
def test_a_page_that_hangs_is_given_up_with_its_browser_and_the_next_one_works(hostile):
    tab, before = hostile.tab, browser.the_browser()
    with pytest.raises(BrowserError, match="did not answer within 1 s"):
        before.run(tab._page.evaluate("() => { for (;;) {} }"), 1.0)
    assert not before.alive
    with pytest.raises(BrowserError):
        tab.snapshot()
    tab.open(f"{hostile.server.origin}/")
    assert "Leave" in tab.snapshot() and browser.the_browser() is not before


def test_a_field_a_list_and_what_is_disabled(chromium):
    page = """<!doctype html><label>Name <input></label><select aria-label="Size"><option>S<option>L</select>
    <button disabled>Off</button>
    <input readonly aria-label="Fixed" value="7"><textarea aria-label="Notes"></textarea>"""
    server = Server(page)
    reader = PageReader(tab := Tab(f"{server.origin}/"))
    tab.open(f"{server.origin}/")
    reader.look()
    assert reader.act("type[1] Ann") is None and '[1] textbox "Name": Ann' in reader.text
    assert reader.act("type[1]") is None and "Ann" not in reader.text
    assert reader.act("select[2] L") is None and 'option "L" [selected]' in reader.text
    assert reader.act("type[5] a\nb") is None and ": a b" in reader.text
    for action, told in {
        "select[2] XL": "no such option",
        "type[2] L": "not a text field",
        "click[3]": "disabled",
        "click[6]": "no element [6]",
        "back": "no page to go back to",
        "scroll[up]": "does not scroll",
        "type[1] " + "x" * 2001: "at most 2000 characters",
        "Click[1]": "not a command",
    }.items():
        assert told in reader.act(action), action
    tab.close()
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    ("text", "action"),
    [
        (" click[12]\n", Action("click", 12)),
        ("type[3] a [b]  c", Action("type", 3, "a [b]  c")),
        ("type[3]", Action("type", 3)),
        ("select[1] x", Action("select", 1, "x")),
        ("scroll[down]", Action("scroll", 0, "down")),
        ("back", Action("back")),
        ("click [1]", None),
        ("click[1] click[2]", None),
        ("scroll[left]", None),
        ("click[1234567]", None),
        ("type[3]a", None),
    ],
)
def test_commands_are_read_as_the_instructions_say(text, action):
    assert parse(text) == action


@pytest.mark.timeout(60)  # seconds that hours of a quadratic search would not fit into
@pytest.mark.parametrize("text", ["[" * 10**6, "type[1" * 10**6, "click[" + "1" * 10**6 + "]", "type[1] " * 10**6])
def test_the_time_for_a_long_answer_grows_no_faster_than_the_answer(text):
    assert parse(text) is None


def test_without_a_browser_the_mend_is_named(monkeypatch):
    monkeypatch.setenv("MANYTURN_CHROMIUM", "/nowhere/chromium")
    with pytest.raises(NeedsSetup, match=r"MANYTURN_CHROMIUM=/nowhere/chromium is no program: install"):
        program.require_browser()
    monkeypatch.delenv("MANYTURN_CHROMIUM")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(NeedsSetup, match=re.escape("set MANYTURN_CHROMIUM=/path/to/chromium")):
        program.find_chromium()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(NeedsSetup, match=r"pip install 'manyturn\[web\]'"):
        program.require_browser()
