"""Errors that name no fix, or another file than the user's."""

from pathlib import Path

import pytest

MAZE = "manyturn/Maze-v0"
FIXES = {  # the command line: what the line names
    ("train", "--resume", "run", "--acept-env"): "--accept-env",
    ("train", "--resume", "run", "--acept-env=true"): "--accept-env",
    ("train", MAZE, "--Steps"): "--steps",
    ("train", MAZE, "--recipe", "GiGPO"): "did you mean 'gigpo'",
    ("evaluate", "Random", "--env", MAZE): "did you mean random",
    ("evaluate", "random", "expert", "--env", MAZE, "--sampling.temperature", "0"): "--sampling.temperature",
    ("evaluate", "replay:", "--env", MAZE): "replay:FOLDER",
    ("evaluate", "replay:nowhere", "--env", MAZE): "replay:FOLDER",
    ("evaluate", "no.gguf", "--env", MAZE): "no.gguf is no GGUF file",
    ("panel", "make", MAZE, "--limit", "2", "--out", "nowhere/p.json"): "nowhere/p.json: ",
    ("panel", "make", MAZE, "--limit", "2", "--out", "/dev/null"): "/dev/null",
}


@pytest.mark.parametrize("words", FIXES, ids=" ".join)
def test_a_mistake_is_one_line_with_the_fix_and_the_name_that_was_typed(command, tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    Path("no.gguf").write_text("no model")
    ended = command(*words)
    [line] = [line for line in ended.err.splitlines() if line.startswith("manyturn: ")]
    assert ended.code == 2 and FIXES[words] in line and ".writing" not in line
