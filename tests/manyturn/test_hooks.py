"""Hooks and public CI run the commands that a developer runs, not copies that drift away from them."""

import re
import subprocess
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]


def _parsed(name: str) -> dict:
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


def _lint_commands() -> list[str]:
    rule = re.search(r"^lint:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert rule, "the Makefile has no rule lint"
    return [line.strip().replace("$(BIN)", ".venv/bin") for line in rule[1].splitlines()]


def test_each_tool_of_make_lint_is_a_hook():
    [local] = _parsed(".pre-commit-config.yaml")["repos"]
    assert local["repo"] == "local", "hooks use the installed tools, whose versions constraints.txt pins"
    entries = [hook["entry"] for hook in local["hooks"]]
    tools = [re.sub(r" (--check )?\.$", "", command) for command in _lint_commands()]
    assert [entry.replace(" --force-exclude", "") for entry in entries] == tools


def test_public_ci_runs_what_we_run():
    jobs = _parsed(".github/workflows/ci.yml")["jobs"]
    steps = {name: [step.get("run", "") for step in job["steps"]] for name, job in jobs.items()}
    assert "make lint" in steps["lint"]
    assert any(step.endswith(".ci/run") for step in steps["test"]) and (ROOT / ".ci" / "run").is_file()


def test_few_lines_are_hidden_from_the_type_checker():
    """A comment that silences it hides the next mistake on its line, too; where a package is missing, there is none."""
    links = {ROOT / "manyturn" / folder for folder in ("envs", "agents", "trainers", "containers")}
    paths = [
        path
        for folder in ("manyturn", "envs", "agents", "trainers", "containers")
        for path in (ROOT / folder).rglob("*.py")
        if not links & set(path.parents)
    ]
    hidden = [
        path.name
        for path in paths
        for rule in re.findall(r"# (?:type|pyright): ignore\[(.*?)\]", path.read_text(encoding="utf-8"))
        if rule not in ("import-not-found", "reportMissingImports")
    ]
    assert len(hidden) <= 20, hidden


def test_the_quickstart_installs_what_training_needs_and_nothing_of_the_tests(tmp_path):
    def commands(*words: str) -> str:
        make = ["make", "--dry-run", f"VENV={tmp_path}/venv", *words]
        return subprocess.run(make, cwd=ROOT, capture_output=True, text=True, check=True).stdout

    assert re.findall(r"--editable '(.*?)'", commands("quickstart")) == [".[train]"]
    assert "--quiet" not in commands("quickstart"), "minutes without a line look like a hang"
    (tmp_path / "venv").mkdir()
    (tmp_path / "venv" / ".installed").touch()
    assert "install" not in commands("quickstart"), "what the tests installed is enough"
