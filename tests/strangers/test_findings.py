"""The table of findings must not name tests that have gone, nor leave a finding out."""

import re
from pathlib import Path

import pytest
from cited import gone, rows

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
ROWS = rows(HERE / "README.md")


def test_every_finding_has_its_row():
    assert [int(number) for number, _ in ROWS] == list(range(1, 65))


@pytest.mark.parametrize(("number", "cell"), ROWS, ids=[number for number, _ in ROWS])
def test_the_tests_of_a_finding_exist(number, cell):
    assert not gone(cell)


def test_readme_leads_to_the_pages():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    pages = ("environments", "tools", "training", "evaluation", "endpoints", "options", "credit")
    assert [page for page in pages if f"docs/{page}.md" not in readme] == []


def test_sentences_that_stopped_newcomers_are_gone_and_words_are_in_the_glossary():
    pages = {page.name: page.read_text(encoding="utf-8") for page in [ROOT / "README.md", *ROOT.glob("docs/*.md")]}
    stopped = ("No token is encoded twice", "go turn by turn", "Do not write `./", "read past it", "its figures speak")
    assert [(name, words) for name, text in pages.items() for words in stopped if words in text] == []
    entries = "\n".join(re.findall(r"^\| ([^|]+) \|", pages["glossary.md"], re.MULTILINE))
    words = ("anchor", "panel", "member", "split", "wrapper", "stage", "column", "part", "seat")
    assert [word for word in words if not re.search(rf"\b{word}s?\b", entries)] == []
