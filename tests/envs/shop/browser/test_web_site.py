"""A site that others can enter, that loses a state, that sells twice, or that hides that the shop failed."""

import http.client
import os
import signal
from collections.abc import Iterator
from urllib.parse import urlencode, urlsplit

import pytest

from manyturn.envs.contract.registration.env_registry import make
from manyturn.envs.shop.browser.shop_visit import Visit, VisitError

site_module = pytest.importorskip("manyturn.envs.shop.browser.web_site", reason="starlette or uvicorn is not installed")


@pytest.fixture(scope="module")
def site() -> Iterator:
    site = site_module.Site()
    yield site
    site.stop()


@pytest.fixture
def env():
    env = make("manyturn/Shop-v0", products=50).unwrapped
    env.reset(seed=3)
    return env


def ask(address: str, method: str = "GET", fields: dict | None = None, **headers: str) -> tuple[int, dict, str]:
    """One request as it is: status, headers, body."""
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=10)
    body = urlencode(fields) if fields else None
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, parts.path, body, named)
    answer = connection.getresponse()
    found = answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read().decode()
    connection.close()
    return found


def press(address: str, visit: Visit, action: str, words: str = "") -> str:
    """Press the button of an action on the page on show; where it leads to."""
    choice = visit.document().actions.index(action)
    status, headers, _ = ask(f"{address}{visit.shown}", "POST", {"choice": choice, "words": words})
    assert status == 303
    assert ask(f"{address}{headers['location']}")[0] == 200
    return headers["location"]


def test_a_visit_is_made_of_states_that_can_be_gone_back_to(site, env):
    visit = Visit(env)
    address = site.open(visit)
    words = env.admissible()[0][len("search[") : -1]
    assert ask(f"{address}0")[0] == 200
    assert press(address, visit, "search", words) == "1" and env.progress() == 0
    first = next(
        action for action in visit.document().actions if action not in ("", "click[next >]", "click[back to search]")
    )
    assert press(address, visit, first) == "2"
    before = env.save()
    assert ask(f"{address}0")[0] == 200 and env.session.place == "home"
    status, headers, _ = ask(f"{address}2", "POST", {"choice": visit_place(visit, 2, "click[description]")})
    assert (status, headers["location"]) == (303, "3") and env.session.place == "detail"
    assert ask(f"{address}2")[0] == 200 and env.save() == before
    assert len(visit.states) == 4


def visit_place(visit: Visit, number: int, action: str) -> int:
    visit.show(number)
    found = visit.document().actions.index(action)
    visit.show(0)
    return found


def test_what_was_bought_stays_bought(site, env):
    visit = Visit(env)
    address = site.open(visit)
    while visit.turn is None or not visit.turn.terminated:
        wanted = env.expert()
        words = wanted[len("search[") : -1] if wanted.startswith("search[") else ""
        press(address, visit, "search" if words else wanted, words)
    assert visit.turn.success and visit.turn.parts["outcome"] == 1.0
    final, states = visit.shown, len(visit.states)
    for number in range(final + 1):
        assert "Your score" in ask(f"{address}{number}")[2]
        ask(f"{address}{number}", "POST", {"choice": 0, "words": "lamp"})
    assert visit.shown == final and len(visit.states) == states


def test_a_search_finds_what_the_text_shop_finds(site, env):
    visit = Visit(env)
    address = site.open(visit)
    for words in (" ", "a]b", "Ünï ★ 漢字", "x" * 300, "a & b = c + d %41"):
        press(address, visit, "search", words)
        assert env.session.query == words.lower()
        press(address, visit, "click[back to search]")
    press(address, visit, "search", "lamp [2 pack]")
    assert env.session.query == "lamp  2 pack]"


@pytest.mark.parametrize(
    "fields",
    [None, {"choice": 99}, {"choice": -1}, {"choice": "x"}, {"words": "a"}, {"choice": 1, "words": "y" * 40_000}],
)
def test_a_form_that_nobody_sent_does_nothing(site, env, fields):
    visit = Visit(env)
    address = site.open(visit)
    assert ask(f"{address}0", "POST", fields)[0] == 404 and len(visit.states) == 1


def test_nobody_enters_without_the_address(site, env):
    address = site.open(Visit(env))
    key = urlsplit(address).path.strip("/")
    assert len(key) >= 32
    for path in (
        "",
        "0",
        f"{key[:-1]}/0",
        f"{key}/",
        f"{key}/1",
        f"{key}/-1",
        f"{key}/%D9%A3",
        f"{key}/0/..",
        "../etc/passwd",
    ):
        status, _, text = ask(f"{site.origin}/{path}")
        assert status in (307, 400, 404) and "Instruction" not in text, path
    site.close(address)
    assert ask(f"{address}0")[0] == 404


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "localhost"},
        {"Origin": "https://evil.example"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Origin": "null", "Sec_Fetch_Site": "same-site"},
    ],
)
def test_requests_of_other_pages_are_refused(site, env, headers):
    address = site.open(Visit(env))
    for method in ("GET", "POST"):
        assert ask(f"{address}0", method, {"choice": 1, "words": "a"}, **headers)[0] == 403


def test_every_answer_carries_the_policy(site, env):
    address = site.open(Visit(env))
    for answer in (ask(f"{address}0"), ask(f"{address}9"), ask(f"{address}0", "POST", {"choice": 1, "words": "a"})):
        assert answer[1]["content-security-policy"] == site_module.POLICY and answer[1]["cache-control"] == "no-store"
        assert "server" not in answer[1]


def test_a_shop_that_fails_is_no_page(site, env, monkeypatch):
    visit = Visit(env)

    def broken(action):
        raise ValueError("out of order")

    monkeypatch.setattr(env, "respond", broken)
    with pytest.raises(VisitError):
        visit.act(0, 1, "lamp")
    assert str(visit.error) == "out of order"


def test_a_port_that_is_taken_is_told(site):
    port = int(site.origin.rpartition(":")[2])
    with pytest.raises(site_module.SiteError, match="0 for any"):
        site_module.Site(port)
    with pytest.raises(site_module.SiteError, match="between 0 and 65535"):
        site_module.Site(70_000)


def test_a_fork_has_a_site_of_its_own_and_its_parent_keeps_its(env):
    address = site_module.the_site().open(Visit(env))
    child = os.fork()
    if not child:
        code = 1
        try:
            signal.alarm(20)
            found = ask(f"{site_module.the_site().open(Visit(env))}0")[0]
            site_module._stop()
            code = 0 if found == 200 else 2
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    assert ask(f"{address}0")[0] == 200
