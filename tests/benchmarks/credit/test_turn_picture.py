"""README's picture, of an episode that its command does not play."""

import json
import sys

import pytest

from benchmarks.credit import turn_picture


@pytest.mark.slow
def test_the_command_plays_the_episode_of_the_result_and_draws_it(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["turn_picture.py", "--tasks", "2", "--out", str(tmp_path / "turns.json")])
    turn_picture.main()
    made, committed = (json.loads(file.read_text()) for file in (tmp_path / "turns.json", turn_picture.OUT))
    assert (made["task"], made["member"]) == (committed["task"], committed["member"])
    for column in ("action", "grpo", "gigpo"):
        assert [turn[column] for turn in made["turns"]] == [turn[column] for turn in committed["turns"]]
    assert made["turns"][-1]["effect"] == pytest.approx(committed["turns"][-1]["effect"], abs=0.1)
    assert (tmp_path / "turns.png").stat().st_size > 10_000
