"""A site that no longer builds, or that nobody can use: lost pages, a search that misses, no menu on a phone."""

import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import manyturn as mt
from manyturn.envs.contract.registration.env_registry import env_ids
from manyturn.recipes import names

ROOT = Path(__file__).parents[2]
DOCS = {path.name for path in (ROOT / "docs").glob("*.md")} - {"package.md"}
LAPTOP, PHONE = {"width": 1366, "height": 768}, {"width": 360, "height": 740}
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """The folder of the site, built as ``make docs`` builds it."""
    for package in ("mkdocs", "material", "mkdocstrings"):
        pytest.importorskip(package, reason=f"{package} is missing: make docs installs it")
    folder = tmp_path_factory.mktemp("site")
    ended = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0 and "WARNING" not in ended.stderr, ended.stderr  # with --quiet, strict counts nothing
    return folder


def test_the_site_has_every_page(site):
    reference = {path.relative_to(site).as_posix() for path in (site / "reference").rglob("*.md")}
    recipes = {f"reference/methods/{name}.md" for name in names()}
    ids = {name.removeprefix("manyturn/") for name in env_ids() if name.startswith("manyturn/")}
    assert recipes | {f"reference/environments/{name}.md" for name in ids} <= reference
    listed = re.findall(r"\]\((.*\.md)\)", (site / "llms.txt").read_text())
    assert set(listed) >= DOCS
    assert reference <= set(listed) and all((site / page).is_file() for page in listed)
    api = (site / "reference" / "api" / "index.html").read_text()
    missing = [
        name for name in mt.__all__ if name not in ("__version__", "credit", "compare") and f".{name}" not in api
    ]
    assert not missing
    assert 'class="gp">&gt;&gt;&gt; ' in api and "<blockquote>" not in api, "examples are code, and no quotations"
    home = (site / "index.html").read_text()
    assert "repository/benchmarks/results/turn_credit.png" in home and "not run:" not in home
    assert not re.search(r"<(?:link|script)[^>]*(?:href|src)=\"https?://", home), "nothing is fetched from elsewhere"


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a server of a folder's files, on this machine alone."""

    class Quiet(SimpleHTTPRequestHandler):
        def __init__(self, *words: Any):
            super().__init__(*words, directory=str(folder))

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture
def visit(site, browser) -> Iterator[Callable[..., Any]]:
    """Opens the site's first page; whatever a page then asks for elsewhere, lacks or complains of fails the test."""
    wrong: list[str] = []
    with served(site) as address:

        def open_(size: dict[str, int], **options: Any) -> Any:
            page = browser.new_context(viewport=size, base_url=address, **options).new_page()
            page.set_default_timeout(60_000)
            page.on("request", lambda request: request.url.startswith(address) or wrong.append(request.url))
            page.on("response", lambda got: got.status < 400 or wrong.append(f"{got.status} {got.url}"))
            page.on("console", lambda message: wrong.append(message.text))
            page.on("pageerror", lambda error: wrong.append(str(error)))
            page.goto("/")
            return page

        yield open_
        for context in browser.contexts:
            context.close()
    assert wrong == []


WANTED = {
    "installation": "installation/",
    "Household-v0": "reference/environments/Household-v0/",
    "manyturn/BFCL-v0": "reference/environments/BFCL-v0/",
    "dr-grpo": "reference/methods/dr-grpo/",
    "lora_layers": "options/",
    "TurnBatch": "reference/api/",
}


def test_search_leads_to_the_page_that_a_name_is_of(visit):
    """The words of names are joined by other signs than a search engine for prose expects."""
    page = visit(LAPTOP)
    field, first = page.locator("[data-md-component=search-query]"), ".md-search-result__item a"
    for words, place in WANTED.items():
        page.goto("/")
        field.click()
        field.press_sequentially(words)
        try:
            page.wait_for_function(
                "([links, place]) => document.querySelector(links)?.href.split('?')[0].includes(place)",
                arg=[first, place],
                timeout=20_000,
            )
        except Exception:
            pytest.fail(f"{words!r} leads to {page.locator(first).evaluate_all('all => all.map((one) => one.href)')}")
        page.locator(first).first.click()
        page.wait_for_url(lambda url, place=place: place.rstrip("/") in url)
        assert page.locator("h1").count() == 1


def test_the_menu_leads_through_the_site(visit):
    from playwright.sync_api import expect

    page = visit(LAPTOP)
    tabs = page.locator(".md-tabs__link").all_inner_texts()
    assert (tabs[0], tabs[-1], len(tabs)) == ("Start", "Results", 10)
    for tab in tabs:
        page.get_by_role("link", name=tab, exact=True).first.click()
        expect(page.locator(".md-tabs__item--active")).to_have_text(tab)  # which waits for the next page
        below = page.locator(".md-sidebar--primary .md-nav__item--active a.md-nav__link:visible")
        last = below.last.inner_text()
        below.last.click()
        expect(page.locator(".md-nav__link--active:visible").first).to_have_text(last)
        expect(page.locator(".md-tabs__item--active")).to_have_text(tab)
    page.locator(".md-header .md-logo").click()
    assert page.url.endswith(":" + page.url.split(":")[2].split("/")[0] + "/")


CONTRAST = """(element) => {
  const bright = (colour) => colour.match(/[\\d.]+/g).slice(0, 3).map(Number)
    .map((one) => one / 255).map((one) => one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4)
    .reduce((sum, one, i) => sum + one * [0.2126, 0.7152, 0.0722][i], 0);
  const seen = (one) => getComputedStyle(one).backgroundColor;
  let below = element;
  while (below.parentElement && /, 0\\)$|transparent/.test(seen(below))) below = below.parentElement;
  const [low, high] = [bright(getComputedStyle(element).color), bright(seen(below))].sort((a, b) => a - b);
  return [bright(seen(below)), (high + 0.05) / (low + 0.05)];
}"""


def test_dark_is_dark_legible_and_kept(visit):
    page = visit(LAPTOP, color_scheme="dark")

    def shown() -> float:
        """How bright the page is; 4.5 is what people of weak sight need."""
        places = (".md-typeset p", ".md-typeset pre code", ".md-typeset a")
        found = [page.locator(place).first.evaluate(CONTRAST) for place in places]  # which waits until it is there
        assert min(contrast for _, contrast in found) >= 4.5, found
        return found[0][0]

    assert shown() < 0.1
    page.locator("label[title=Light]").click()
    assert shown() > 0.9
    home = page.url
    page.get_by_role("link", name="Train", exact=True).first.click()
    page.wait_for_url(lambda url: url != home)
    assert shown() > 0.9, "what a reader has chosen holds on the next page"
    assert visit(LAPTOP, color_scheme="light").locator(".md-typeset p").first.evaluate(CONTRAST)[0] > 0.9


def test_every_page_fits_a_phone(visit):
    """What is wider than the screen pushes all lines out of it; tables and code scroll by themselves."""
    page = visit(PHONE)
    wide = {}
    for place in [
        "",
        *(f"{name.removesuffix('.md')}/" for name in sorted(DOCS)),
        "reference/api/",
        "reference/commands/",
    ]:
        page.goto(f"/{place}")
        width = page.evaluate("document.documentElement.scrollWidth")
        pictures = page.evaluate("[...document.images].filter((one) => !one.naturalWidth).map((one) => one.src)")
        if width > PHONE["width"] or pictures:
            wide[place] = (width, pictures)
    assert wide == {}


def test_a_phone_has_menu_and_search(visit):
    page = visit(PHONE)
    page.locator("label.md-header__button[for=__drawer]").click()
    page.locator("label.md-nav__title[for=__nav_1]").click()  # from the pages below Start to all sections
    page.locator("label.md-nav__link", has_text="Reference").click()
    page.get_by_role("link", name="Exit codes", exact=True).click()
    page.wait_for_url("**/reference/exit-codes/")
    page.locator("label.md-header__button[for=__search]").click()
    page.locator("[data-md-component=search-query]").press_sequentially("choosing")
    page.locator(".md-search-result__item a").first.click()
    page.wait_for_url("**/choosing-credit/**")
