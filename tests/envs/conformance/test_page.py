"""Pages on environments and their checks: an environment on one that breaks the contract misleads at once."""

import re
from pathlib import Path

import pytest

from manyturn.envs.conformance.check_runner import NAMES, Finding, Report, examined

DOCS = Path(__file__).parents[3] / "docs"
PAGES = [(DOCS / name).read_text(encoding="utf-8") for name in ("environments.md", "gymnasium-environments.md")]
BLOCKS = re.findall(r"```python\n(.*?)```", "\n".join(PAGES), re.DOTALL)


@pytest.mark.parametrize("cls", ["Safe", "Stairs"])
def test_the_environments_of_the_page_pass_the_check(cls, tmp_path):
    [block] = [block for block in BLOCKS if f"class {cls}(" in block]
    (tmp_path / "own.py").write_text(block)
    chosen = [name for name in NAMES if name not in ("other process", "processes")]
    found = examined(f"{tmp_path}/own.py:{cls}", {}, 10, 0, 60.0, chosen)
    report = Report(cls, tuple(Finding(**values) for values in found))
    assert {finding.status for finding in report.findings} <= {"passed", "skipped"}, report


def test_the_page_names_every_check_in_its_order():
    page = (DOCS / "checking.md").read_text(encoding="utf-8")
    table = page.partition("| check | problem it reports |")[2].partition("\n\n")[0]
    assert tuple(re.findall(r"^\| `([\w ]+)` \|", table, re.MULTILINE)) == NAMES
