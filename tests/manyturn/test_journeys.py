"""Pages whose commands nobody runs, whose links lead nowhere, or that no other page leads to."""

import importlib.util
import os
import re
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path

import pytest

from manyturn.cli.app import app

ROOT = Path(__file__).parents[2]
LOADER = SourceFileLoader("journeys", str(ROOT / ".ci" / "journeys"))
LINK = re.compile(r"(?<!`)\[[^\]]*\]\(([^)\s]+)\)")


@pytest.fixture(scope="module")
def journeys():
    spec = importlib.util.spec_from_loader("journeys", LOADER)
    module = importlib.util.module_from_spec(spec)
    sys.modules["journeys"] = module  # where dataclasses look for the module of a class
    writes, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    LOADER.exec_module(module)
    sys.dont_write_bytecode = writes
    return module


def anchors(page: Path) -> set[str]:
    """What links may name after ``#``: headings, as sites spell them."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_a_page_is_followed_in_its_order(journeys, tmp_path, capfd):
    page = (
        "This is all of `greet.py`:\n\n```python\nWORD = 'hello'\n```\n\n"
        "```sh\necho $NAME > name    # a comment\ntest \\\n  -s name\nmanyturn train DIR\n```\n\n"
        "<!-- not run: it would fail -->\n```sh\nfalse\n```\n\n```python\nimport greet\n"
        "print(greet.WORD, open('name').read())\n```\n"
    )
    journeys.follow(page, tmp_path, {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.defpath}", "NAME": "you"})
    printed = capfd.readouterr().out
    assert "hello you" in printed and "left out: DIR is" in printed and "(false ...: not run: it would fail)" in printed
    with pytest.raises(SystemExit, match="exit code 1 of: false"):
        journeys.follow(page.replace("<!-- not run: it would fail -->\n", ""), tmp_path, {"PATH": os.defpath})
    with pytest.raises(SystemExit, match="say 'not run: ' or 'run by '"):
        list(journeys.blocks("<!-- later -->\n```sh\nfalse\n```\n"))


def test_what_a_page_says_is_printed_is_printed(journeys, tmp_path, capfd):
    page = (
        "```sh\npython server.py &\npython echo.py\n```\n\n<!-- figures vary -->\n```text\n"
        "8 s  hello\n> you\n...\ndone\n```\n"
    )
    (tmp_path / "server.py").write_text("import time\nprint('up')\ntime.sleep(600)\n")
    (tmp_path / "echo.py").write_text("print('7.5 s hello')\nprint('>', input(), '\\na\\nb\\ndone')\n")
    environment = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.defpath}"}
    journeys.follow(page, tmp_path, environment)
    assert "$ python server.py &\nup" in capfd.readouterr().out
    for wrong in (page.replace("<!-- figures vary -->\n", ""), page.replace("hello", "hallo")):
        with pytest.raises(SystemExit, match="the page says"):
            journeys.follow(wrong, tmp_path, environment)


def test_a_block_that_a_test_runs_names_a_test_of_its_page(journeys):
    for page in journeys.pages(ROOT):
        for block in journeys.blocks(page.read_text(encoding="utf-8")):
            if block.left_out.startswith(journeys.RUN_BY):
                test = ROOT / block.left_out.removeprefix(journeys.RUN_BY)
                assert page.name in test.read_text(encoding="utf-8"), f"{page.name}: {test}"


def test_commands_of_pages_exist(journeys):
    """A command that a page shows and the program does not know would be found by the first reader."""
    shown = {
        (page.name, word)
        for page in journeys.pages(ROOT)
        for block in journeys.blocks(page.read_text(encoding="utf-8"))
        if block.language == "sh"
        for word in re.findall(r"^\s*(?:\S+/)?manyturn ([a-z][\w-]*)", block.text, re.MULTILINE)
    }
    assert len(shown) > 30 and not {(page, word) for page, word in shown if word not in app}


def test_links_of_pages_lead_somewhere(journeys):
    for page in (*journeys.pages(ROOT), ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"):
        for link in LINK.findall(page.read_text(encoding="utf-8")):
            name, _, anchor = link.partition("#")
            if re.match(r"\w+:", link) or page.name == "package.md":
                continue
            target = (page.parent / name) if name else page
            assert target.exists(), f"{page.name}: {link}"
            assert not anchor or anchor in anchors(target), f"{page.name}: {link}"


def test_each_page_is_led_to_by_the_first():
    index = (ROOT / "docs" / "pages.md").read_text(encoding="utf-8")
    links = {link.partition("#")[0] for link in LINK.findall(index)}
    told = {link for link in links if not link.startswith("../")} | {"pages.md", "package.md"}
    assert {page.name for page in (ROOT / "docs").glob("*.md")} == told


def test_no_menu_of_the_site_is_too_long_to_read():
    """Pages that the menu leaves out are errors when the site is built."""
    yaml = pytest.importorskip("yaml")
    groups = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    assert max(len(entries) for group in groups for entries in group.values()) <= 8


def test_readme_fits_on_a_few_screens():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 140
