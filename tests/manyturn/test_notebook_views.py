"""Results that a notebook shows as a dictionary of hundreds of lines, or that bring markup of their own into it."""

import json
import re
from html import unescape
from io import StringIO

import pytest
from rich.console import Console

import manyturn as mt
from manyturn.api.training import Trained

pytestmark = pytest.mark.versions


def text_of(result) -> str:
    return unescape(re.sub(r"<[^>]+>", "", result._repr_html_()))


def printed(result) -> str:
    out = StringIO()
    result.show(Console(file=out, width=110, highlight=False))
    return out.getvalue()


def test_a_notebook_shows_what_the_terminal_prints(tiny_run, tmp_path):
    folders = [tmp_path / name for name in ("random", "expert")]
    found = [mt.evaluate(folder.name, "manyturn/Maze-v0", limit=3, out=folder) for folder in folders]
    compared = mt.compare(*folders)
    run = Trained(tiny_run, json.loads((tiny_run / "summary.json").read_text()))
    for result, said in ((found[1], "expert on"), (compared, "against A, paired by task"), (run, "held-out tasks")):
        assert said in printed(result) and text_of(result).strip() == printed(result).strip()
        assert result._repr_html_().startswith("<pre ") and "95 % interval" in text_of(result)
    assert json.loads(json.dumps(compared)) == compared, "still plain values"


def test_a_name_brings_no_markup_into_a_notebook():
    def policy(observation, info):
        return "go north"

    policy.__name__ = "<script>alert(1)</script>"
    page = mt.evaluate(policy, "manyturn/Maze-v0", limit=1)._repr_html_()
    assert "<script" not in page and "&lt;script&gt;alert" in page
