"""Environments as three newcomers wrote them: check says whether they are sound, in the first minute."""

from pathlib import Path

import pytest
from needs import peer

HERE = Path(__file__).parent


@pytest.mark.slow
@pytest.mark.parametrize("name", ["hangman.py:Hangman", "plain.py:Judged"])
def test_sound_ones_pass_the_check(command, name):
    found = command("check", f"{HERE}/{name}")
    assert found.code == 0, found.out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("package", "name"), [("textarena", "textarena_env.py:Hanoi"), ("reasoning_gym", "reasoning_env.py:Sums")]
)
def test_games_of_other_projects_pass_the_check_and_are_solved(command, tmp_path, package, name):
    peer(package)
    found = command("check", f"{HERE}/{name}", "--samples", 5)
    assert found.code == 0, found.out
    found = command("evaluate", "expert", "--env", f"{HERE}/{name}", "--limit", 10, "--out", tmp_path)
    assert found.code == 0 and "100" in found.out, found.out + found.err


@pytest.mark.slow
def test_seeds_of_another_project_that_overlap_are_found(command, monkeypatch):
    peer("reasoning_gym")
    monkeypatch.setenv("COLUMNS", "1000")
    found = command("check", f"{HERE}/reasoning_env.py:Overlapping", "--samples", 2)
    assert found.code == 1 and "same problem" in found.out, found.out
