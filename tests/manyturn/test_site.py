"""A site that no longer builds: a link that leads nowhere, a page that is in no menu, a name that the API lacks."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import manyturn as mt
from manyturn.envs.contract.environments import env_ids
from manyturn.recipes import names

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_site_builds_strictly_and_has_every_page(tmp_path):
    for package in ("mkdocs", "material", "mkdocstrings"):
        pytest.importorskip(package, reason=f"{package} is missing: make docs installs it")
    ended = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stdout + ended.stderr) == (0, "")
    reference = {path.relative_to(tmp_path).as_posix() for path in (tmp_path / "reference").rglob("*.md")}
    recipes = {f"reference/methods/{name}.md" for name in names()}
    ids = {name.removeprefix("manyturn/") for name in env_ids() if name.startswith("manyturn/")}
    assert recipes | {f"reference/environments/{name}.md" for name in ids} <= reference
    listed = re.findall(r"\]\((.*\.md)\)", (tmp_path / "llms.txt").read_text())
    assert {path.name for path in (ROOT / "docs").glob("*.md")} - {"package.md"} <= set(listed)
    assert reference <= set(listed) and all((tmp_path / page).is_file() for page in listed)
    api = (tmp_path / "reference" / "api" / "index.html").read_text()
    missing = [
        name for name in mt.__all__ if name not in ("__version__", "credit", "compare") and f".{name}" not in api
    ]
    assert not missing
    home = (tmp_path / "index.html").read_text()
    assert "repository/benchmarks/results/quickstart.png" in home and "not run:" not in home
    assert not re.search(r"<(?:link|script)[^>]*(?:href|src)=\"https?://", home), "nothing is fetched from elsewhere"
