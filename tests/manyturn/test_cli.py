"""The journeys of README, in small, and what the command line promises beyond them."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from cyclopts import App
from rich.console import Console

from manyturn.cli.app import app
from manyturn.cli.pages.option_pages import of_section
from manyturn.trainers.recipe.config import RunConfig

pytestmark = pytest.mark.versions

ROOT = Path(__file__).parents[2]


def manyturn(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-m", "manyturn", *words], cwd=cwd, capture_output=True, text=True, check=False
    )


def readme_blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)


@pytest.fixture(scope="module")
def stranger(tmp_path_factory):
    """A folder outside the repository with README's environment in it."""
    folder = tmp_path_factory.mktemp("stranger")
    [block] = [b for b in readme_blocks("python") if "mt.TextEnv" in b]
    assert len(block.splitlines()) <= 30, "README promises thirty lines"
    (folder / "doors.py").write_text(block)
    return folder


def test_readme_environment_passes_the_check(stranger):
    found = manyturn("check", "doors.py:Doors", cwd=stranger)
    assert found.returncode == 0, found.stdout + found.stderr


def test_readme_environment_trains_and_evaluates_without_an_edit(stranger, command, monkeypatch):
    """Training is a process of its own, as a stranger starts it; what follows it need not be."""
    short = ["--steps", "2", "--warmup.max_updates", "50", "--warmup.check_episodes", "16", "--evaluation.limit", "16"]
    found = manyturn("train", "doors.py:Doors", "--out", "run", *short, cwd=stranger)
    assert found.returncode == 0, found.stdout + found.stderr
    assert "before: after imitating " in found.stdout and "evaluating and saving" in found.stdout
    summary = json.loads((stranger / "run" / "summary.json").read_text())
    assert {"before", "after", "difference", "expert", "random", "panel", "seconds", "device", "seed"} <= set(summary)
    assert (stranger / "run" / "curve.png").stat().st_size > 10_000
    words = ["--env", "doors.py:Doors", "--limit", "8", "--out"]
    monkeypatch.chdir(stranger)
    for policy in ("random", "expert", "run"):
        ended = command("evaluate", policy, *words, f"evaluation-{policy}")
        assert ended.code == 0, ended.out + ended.err
        for name in ("summary.json", "episodes.parquet", "turns.parquet"):
            assert (stranger / f"evaluation-{policy}" / name).is_file()
    for policy in ("run", "run/checkpoints/step_000002", "run/checkpoints/step_000002/model"):
        refused = command("evaluate", policy, "--split", "train")
        assert refused.code and "trained on" in refused.err, "whichever way the weights are named"
    again = command("train", "doors.py:Doors", "--out", "run")
    assert again.code and "--resume" in again.err
    monkeypatch.chdir(stranger.parent)
    elsewhere = command("evaluate", stranger / "run", "--limit", "2")
    assert elsewhere.code == 0, elsewhere.err


def test_help_of_train_names_every_section_with_options_that_exist_and_no_flag_that_nobody_needs(stranger):
    told = manyturn("train", "--help", cwd=stranger).stdout
    lines = re.findall(r"•(.*?):(.*?)(?= •|╭)", " ".join(told.split()))
    listed = {section: of.split(", ") for names, of in lines for section in names.strip().split(", ")}
    listed = {section: [name.strip() for name in names] for section, names in listed.items()}
    alone = {name.replace("-", "_") for name in listed.pop("no section")}
    assert alone | listed.keys() == RunConfig.model_fields.keys() - {"keep_checkpoints", "keep_tokens"}
    for section, names in listed.items():
        known = {row.name for group in of_section(section, own=True) for row in group.rows}
        assert {f"{section}.{name}".replace("-", "_") for name in names} <= known
    assert "--empty-recipe" not in told and "--no-accept-config" not in told and "[ENV]" in told


def helps(width: int, of: App = app, name: str = "") -> Iterator[tuple[str, str]]:
    """Each command, and its help on a terminal of so many columns."""
    shown = StringIO()
    of.help_print([], console=Console(file=shown, width=width, no_color=True))
    yield name, shown.getvalue()
    for below in of:
        if not below.startswith("-"):
            yield from helps(width, of[below], f"{name} {below}".strip())


def test_the_help_of_each_command_fits_on_one_screen_or_has_sections():
    shown = dict(helps(100))
    assert {"", "train", "suite freeze", "trajectories export"} <= shown.keys() and len(shown) > 30
    long = {name: text.count("╭─") for name, text in shown.items() if len(text.splitlines()) > 40}
    assert "evaluate" in long and min(number for name, number in long.items() if name != "train") >= 3
    assert max(len(text.splitlines()) for text in shown.values()) <= 56
    summaries = re.findall(r"^│ ([a-z][a-z-]*) +(.*?) +│$", shown[""], re.MULTILINE)
    assert {name for name, _ in summaries} == {name for name in shown if name and " " not in name}, "one line each"


def test_completion_offers_the_commands_and_their_options():
    """The script that --install-completion writes, asked by bash itself."""
    script = app.generate_completion(shell="bash")
    for line, cursor, expected in (("manyturn eva", 1, "evaluate"), ("manyturn evaluate --wra", 2, "--wrappers")):
        ask = f"COMP_WORDS=({line}); COMP_CWORD={cursor}; _manyturn; echo ${{COMPREPLY[@]}}"
        found = subprocess.run(["bash", "-c", f"{script}\n{ask}"], capture_output=True, text=True, check=True)
        assert found.stdout.split() == [expected], found.stderr


def test_options_may_stand_without_an_environment_when_a_recipe_names_it(command, tmp_path):
    words = ["train", "--recipe", "quickstart", "--steps", "0", "--warmup.episodes", "0", "--evaluation.limit", "2"]
    found = command(*words, "--model.width", "16", "--out", tmp_path / "run")
    assert found.code == 0, found.out + found.err


def test_a_configuration_that_cannot_start_leaves_the_folder_free(command, tmp_path):
    words = ["train", "manyturn/Maze-v0", "--out", tmp_path / "run", "--steps", "0", "--warmup.episodes", "0"]
    wrong = command(*words, "--env.args", '{difficulty = "esay"}')
    assert wrong.code and "easy" in wrong.err
    assert command(*words, "--evaluation.limit", "1").code == 0, "and a panel of one task is fine"


def test_a_check_of_what_is_no_environment_is_bad_input(stranger):
    found = manyturn("check", "manyturn/Maze-v9", cwd=stranger)
    assert found.returncode == 2 and "manyturn/Maze-v0" in found.stderr
