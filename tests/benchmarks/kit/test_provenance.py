"""Figures that nobody can make again: of a tree that no commit has, or by a script that is gone."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
RESULTS = ROOT / "benchmarks" / "results"
FILES = sorted(path for path in RESULTS.iterdir() if path.suffix in (".json", ".jsonl"))
# Who has no checkout adds a result of a suite without a commit, and the page says so.
OF_SUITES = sorted(path for path in RESULTS.glob("suite/*/*.json") if "commit" in json.loads(path.read_text()))
# The page of a suite has the commands of its results, each of which holds at the commit next to it.
DOCS = [page for page in sorted((ROOT / "docs").rglob("*.md")) if not page.name.startswith("suite-v")]
PAGES = [ROOT / "README.md", ROOT / "benchmarks" / "README.md", *DOCS]


def git(*words: str, where: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", *words], cwd=where, capture_output=True, text=True, check=False)


@pytest.fixture(scope="session")
def checkout() -> Path:
    """The checkout, if its history is there to look commits up in."""
    if git("rev-parse", "--is-shallow-repository").stdout.strip() != "false":
        pytest.skip("no history here: results name commits, which only a full clone has")
    return ROOT


def records(path: Path) -> list[dict]:
    text = path.read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()] if path.suffix == ".jsonl" else [json.loads(text)]


def commit_of(record: dict) -> str:
    return record.get("commit") or record["environment"]["commit"]


def script_of(command: str) -> str:
    """The file that a command runs; make's targets are in the Makefile.

    >>> script_of("python benchmarks/gated.py RUN-FOLDER"), script_of("make faults")
    ('benchmarks/gated.py', 'Makefile')
    >>> script_of("python -m benchmarks.speed.learner")
    'benchmarks/speed/learner/__main__.py'
    """
    words = command.split()
    if words[0] == "make":
        return "Makefile"
    return file_of(words[2]) if words[1] == "-m" else words[1]


def file_of(module: str) -> str:
    folder = f"{module.replace('.', '/')}/__main__.py"
    return folder if (ROOT / folder).is_file() else f"{module.replace('.', '/')}.py"


def moved() -> dict[str, str]:
    """Former script -> the file that its row in the README leads to; README itself for a retired one."""
    text = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([\w/]+\.py)` \| (?:`python -m ([\w.]+)`|retired)", text, re.MULTILINE)
    return {f"benchmarks/{script}": file_of(module) if module else "benchmarks/README.md" for script, module in rows}


def command_of(path: Path, record: dict) -> str:
    # Results that are older than the entry "command" have the name of the script that made them.
    return record.get("command", f"python benchmarks/{path.stem}.py")


@pytest.mark.parametrize("path", [*FILES, *OF_SUITES], ids=lambda path: path.name)
def test_a_result_is_of_a_clean_commit_that_had_its_script(path, checkout):
    for made in sorted({(commit_of(record), script_of(command_of(path, record))) for record in records(path)}):
        commit, script = made
        assert re.fullmatch(r"[0-9a-f]{7,40}", commit), f"{path.name} is of {commit}, which is no commit"
        assert git("merge-base", "--is-ancestor", commit, "HEAD").returncode == 0, f"{commit} is not in the history"
        assert git("cat-file", "-e", f"{commit}:{script}").returncode == 0, f"{commit} has no {script}"
        assert (ROOT / moved().get(script, script)).is_file(), f"{path.name} was made by {script}, which is gone"


def test_a_picture_or_a_table_has_its_figures():
    names = {path.stem for path in FILES}
    shown = {path.name: re.sub(r"_(parts|alignment)$", "", path.stem) for path in RESULTS.iterdir() if path.is_file()}
    assert not {name for name, stem in shown.items() if stem not in names}


def test_pages_name_results_and_scripts_that_are_there():
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        named = re.findall(r"(?<![\w/])benchmarks/[\w/-]+\.(?:jsonl?|md|png|py|toml)\b", text)
        named += [file_of(module) for module in re.findall(r"python -m (benchmarks[\w.]*\w)", text)]
        assert not [name for name in named if not (ROOT / name).is_file()], page


def test_a_peer_s_figure_that_no_script_measures_is_not_kept():
    for path in FILES:
        assert not re.search(r"own machine|is said|(?<!look )elsewhere", path.read_text(encoding="utf-8")), path.name


@pytest.fixture(scope="module")
def clone(tmp_path_factory, checkout) -> Path:
    """A clone that a benchmark may spoil."""
    folder = tmp_path_factory.mktemp("clone") / "clone"
    assert git("clone", "--quiet", "--shared", str(ROOT), str(folder)).returncode == 0
    for name in (
        "benchmarks/kit/provenance.py",
        "benchmarks/runs/interval_coverage.py",
    ):  # as they are now, committed or not
        (folder / name).write_bytes((ROOT / name).read_bytes())
    identity = ("-c", "user.name=test", "-c", "user.email=test@localhost")
    git(*identity, "commit", "--quiet", "--all", "--message", "as it is", where=folder)
    return folder


def measure(clone: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks.runs.interval_coverage", "--simulations", "10"]
    environment = {**os.environ, "PYTHONPATH": str(clone)}
    return subprocess.run(command, cwd=clone, env=environment, capture_output=True, text=True, check=False)


def test_a_benchmark_refuses_a_tree_that_differs_from_its_commit(clone):
    before = (clone / "benchmarks/results/coverage.json").read_text()
    for name in ("envs/contract/random_keys.py", "envs/new.py"):
        spoiled = clone / name
        kept = spoiled.read_bytes() if spoiled.exists() else None
        spoiled.write_bytes((kept or b"") + b"# changed\n")
        ended = measure(clone)
        assert ended.returncode == 1 and "-dirty: commit first, or write to another file" in ended.stderr, name
        assert (clone / "benchmarks/results/coverage.json").read_text() == before
        spoiled.unlink() if kept is None else spoiled.write_bytes(kept)


def test_a_benchmark_writes_its_commit_and_command(clone):
    (clone / "benchmarks/results/quickstart.json").write_text("{}")  # another new result makes no tree dirty
    ended = measure(clone)
    assert ended.returncode == 0, ended.stderr
    written = json.loads((clone / "benchmarks/results/coverage.json").read_text())
    head = git("rev-parse", "--short", "HEAD", where=clone).stdout.strip()
    assert (written["commit"], written["command"]) == (
        head,
        "python -m benchmarks.runs.interval_coverage --simulations 10",
    )


def test_a_copy_without_history_knows_its_commit_by_its_stamp(clone, tmp_path):
    def ask(question: str, where: Path) -> str:
        code = f"from benchmarks.kit import provenance; print(provenance.{question}())"
        words = [sys.executable, "-c", code]
        return subprocess.run(words, cwd=where, capture_output=True, text=True, check=True).stdout.strip()

    head, copy = git("rev-parse", "--short", "HEAD", where=clone).stdout.strip(), tmp_path / "copy"
    assert ask("stamp", clone) == head
    shutil.copytree(clone, copy, symlinks=True, ignore=shutil.ignore_patterns(".git"))
    assert ask("commit", copy) == head
    (copy / "benchmarks" / "runs" / "more.py").write_text("")
    assert ask("commit", copy) == f"{head}-dirty", "a file that is new could have changed a figure"
    (copy / "benchmarks" / "runs" / "more.py").unlink()
    (copy / "agents" / "__init__.py").write_bytes((copy / "agents" / "__init__.py").read_bytes() + b"# changed\n")
    assert ask("commit", copy) == f"{head}-dirty"
    (copy / "gpu-kit" / "commit.json").unlink()
    assert ask("commit", copy) == "unknown"


def test_each_benchmark_takes_its_commit_from_one_place():
    """A script that asks git by itself could forget to look whether the tree is clean."""
    for path in (ROOT / "benchmarks").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if path.stem != "provenance":
            assert "rev-parse" not in text and '"describe"' not in text, path.name
            assert "results/" not in re.sub(r'""".*?"""|#.*', "", text, flags=re.DOTALL), path.name


def modules() -> list[str]:
    """All modules of rooms and kit."""
    files = [path.relative_to(ROOT).with_suffix("") for path in sorted((ROOT / "benchmarks").rglob("*/*.py"))]
    return [".".join(file.parts) for file in files if file.name != "__init__"]


@pytest.mark.deep
def test_no_benchmark_imports_what_has_moved(tmp_path, forked):
    """A script that takes hours is run too seldom to learn of its imports that way."""
    code = f"import importlib\nfor name in {modules()}:\n    importlib.import_module(name)"
    (tmp_path / "all.py").write_text(code)
    ended = forked(tmp_path / "all.py", env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert ended.returncode == 0, ended.stderr


def test_a_benchmark_stands_on_the_kit_and_on_helpers_of_its_own_room():
    for module in modules():
        tree = ast.parse((ROOT / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8"))
        nodes = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
        imported = [name for node in nodes for name in (node.module, *(f"{node.module}.{n.name}" for n in node.names))]
        ours = [name.split(".") for name in imported if name.startswith("benchmarks.")]
        assert {parts[1] for parts in ours} <= {"kit", module.split(".")[1]}, module
        files = [file for parts in ours if (file := ROOT.joinpath(*parts).with_suffix(".py")).is_file()]
        assert not [file for file in files if "\ndef main(" in file.read_text(encoding="utf-8")], module
