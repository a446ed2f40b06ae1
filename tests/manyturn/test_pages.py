"""Pages on installation, Python and plugins: examples that do not run, and extras that are not as the table says."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def blocks(page: str, language: str) -> list[str]:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


@pytest.mark.slow
def test_the_examples_in_python_run_in_order(tmp_path):
    readme = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "doors.py").write_text(next(block for block in readme if "class Doors" in block))
    (tmp_path / "page.py").write_text("\n".join(blocks("python.md", "python")))
    found = subprocess.run([sys.executable, "page.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (found.returncode, found.stderr) == (0, "")
    checked, *metrics, trained, longer, evaluated, compared = found.stdout.splitlines()
    assert checked == "passed []" and metrics[-1].startswith("train 2 ") and longer == "3"
    assert trained.startswith("runs/first ") and float(evaluated.split()[0]) < 0.5 and len(compared.split()) == 2


def test_the_page_on_python_names_what_is_public():
    import manyturn as mt

    named = set(re.findall(r"`mt\.(\w+)`", (ROOT / "docs" / "python.md").read_text(encoding="utf-8")))
    assert named == set(mt.__all__) - {"__version__"}


def test_an_extra_that_is_named_anywhere_is_one_of_the_projects():
    listed = subprocess.run(["git", "ls-files", "*.md", "*.py"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout, so there is no list of files")
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    texts = {name: ROOT / name for name in listed.stdout.splitlines() if (ROOT / name).is_file()}
    named = {
        (file, extra.strip())
        for file, path in texts.items()
        for several in re.findall(r"manyturn\[([a-z][\w, -]*)\]", path.read_text(encoding="utf-8"))
        for extra in several.split(",")
    }
    assert len(named) > 10 and not {(file, extra) for file, extra in named if extra not in extras}


def test_the_table_of_extras_is_the_projects():
    rows = re.findall(r"^\| `([\w-]+)` \| ([^|]+) \|", (ROOT / "docs" / "installation.md").read_text(), re.MULTILINE)
    told = {extra: packages.strip().split(", ") for extra, packages in rows}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    assert told == {extra: [re.match(r"[\w-]+", need)[0] for need in needs] for extra, needs in extras.items()}


def test_the_python_versions_of_the_page_are_the_projects():
    page = (ROOT / "docs" / "installation.md").read_text(encoding="utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    versions = [line.rpartition(" ")[2] for line in project["classifiers"] if re.search(r":: \d\.\d", line)]
    assert f"Python {', '.join(versions[:-1])} or {versions[-1]}." in page
    assert project["requires-python"] == f">={versions[0]}"


@pytest.mark.parametrize("typo", [False, True])
def test_the_package_of_the_page_is_found_and_its_fault_is_told_as_the_page_says(tmp_path, typo):
    [announced], [source] = blocks("plugins.md", "toml"), blocks("plugins.md", "python")
    project = tomllib.loads(announced)["project"]
    [(name, value)] = project["entry-points"]["manyturn.plugins"].items()
    (tmp_path / "mypkg.py").write_text(source.replace("mt.register", "mt.regster") if typo else source)
    info = tmp_path / "my_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[manyturn.plugins]\n{name} = {value}\n")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "manyturn", "panel", "make", "mypkg/Doors-v0", "--limit", "2"]
    found = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False
    )
    if not typo:
        assert (found.returncode, found.stderr) == (0, "") and "2 tasks" in found.stdout
        return
    page = " ".join((ROOT / "docs" / "plugins.md").read_text(encoding="utf-8").split())
    warning, refused = found.stderr.splitlines()
    assert found.returncode == 2 and f"``` {warning} ```" in page
    assert "no environment 'mypkg/Doors-v0'" in refused and "it may be a name of a plugin that is broken" in refused
