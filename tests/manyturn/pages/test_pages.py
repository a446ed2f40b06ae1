"""Pages that nobody reads to the end, that no menu leads to, or with links that lead nowhere."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
PAGES = sorted({*DOCS.glob("*.md")} - {DOCS / "package.md"})
LONG = {"credit-audit-results.md", "errors.md", "glossary.md", "options.md", "ready-made-runs.md", "recipes.md"}
LINK = re.compile(r"\]\((?!\w+:)([^)\s#]*)(?:#([^)\s]+))?\)")
CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)


def menu() -> Iterator[tuple[str, list[Any]]]:
    """Each group of the site's menu with its entries, groups within groups too."""
    waiting = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    while waiting:
        entry = waiting.pop()
        if isinstance(entry, dict):
            [(name, entries)] = entry.items()
            yield name, entries
            waiting += entries


def anchors(page: Path) -> set[str]:
    """Anchors of a page's headings, as the site makes them."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    words = [re.sub(r"[^\w\s-]", "", heading.lower()).strip() for heading in re.findall(r"^#+ (.+)$", text, re.M)]
    return {re.sub(r"[-\s]+", "-", heading) for heading in words}


@pytest.mark.parametrize("page", [page for page in PAGES if page.name not in LONG], ids=lambda page: page.name)
def test_a_page_that_people_wrote_has_at_most_150_lines(page):
    lines = len(page.read_text(encoding="utf-8").splitlines())
    assert lines <= 150, "a page has one job: cut what stands elsewhere, or give the second job a page"


def test_groups_of_the_menu_are_small_and_lead_to_every_page():
    groups = dict(menu())
    assert {name: len(entries) for name, entries in groups.items() if len(entries) > 8} == {}
    listed = [entry for entries in groups.values() for entry in entries if isinstance(entry, str)]
    assert len(listed) == len({*listed}) and {page.name for page in PAGES} <= {*listed}


def test_links_lead_to_files_and_headings():
    lost = []
    for page in [*PAGES, *ROOT.glob("*.md"), ROOT / "examples" / "README.md"]:
        for path, anchor in LINK.findall(CODE.sub("", page.read_text(encoding="utf-8"))):
            target = (page.parent / path).resolve() if path else page
            if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
                lost.append(f"{page.name}: {path}#{anchor}")
    assert not lost
