"""A replay must play what was recorded, or say that the environment is no longer the one that was recorded."""

import json
from pathlib import Path

from manyturn.agents.records.episode_rows import read_turns

WORLD = '''
import manyturn as mt

class Lamp(mt.TextEnv):
    """A lamp that must be lit before it is named."""
    instructions = "Light the lamp, then say done."
    wanted = "light"
    max_turns = 4
    def tasks(self, split):
        return [mt.Task(f"{split}/{i}", split, {"split": split, "i": i}) for i in range(5)]
    def begin(self, task, rng):
        self.lit = False
        return "It is dark."
    def respond(self, action):
        if action == "done" and self.lit:
            return self.succeed("Well done.")
        self.lit = self.lit or action == self.wanted
        return self.go_on("It is bright." if self.lit else "It is dark.")
    def admissible(self):
        return ["light", "done"]
'''


def written(folder: Path, text: str) -> str:
    (folder / "lamp.py").write_text(text, encoding="utf-8")
    return f"{folder / 'lamp.py'}:Lamp"


def test_the_same_world_gives_the_same_turns_and_a_changed_one_is_noticed(command, tmp_path):
    name, before, after = written(tmp_path, WORLD), tmp_path / "before", tmp_path / "after"
    assert command("evaluate", "random", "--env", name, "--repeats", 3, "--out", before).code == 0
    words = ["--panel", before / "panel.json", "--repeats", 3]
    assert command("evaluate", f"replay:{before}", "--env", name, *words, "--out", after).code == 0
    assert turns(after) == turns(before) != []
    assert 0 < summary(after)["success"]["mean"] == summary(before)["success"]["mean"] < 1
    assert summary(after)["policy"] == f"replay of {before}"

    (tmp_path / "later").mkdir()
    later = written(tmp_path / "later", WORLD.replace('wanted = "light"', 'wanted = "burn"'))
    changed = command("evaluate", f"replay:{before}", "--env", later, *words)
    assert changed.code == 2 and "the episode goes on after its" in changed.err and "answers otherwise" in changed.err


def test_more_than_was_recorded_is_refused_with_what_to_give(command, tmp_path):
    name, before = written(tmp_path, WORLD), tmp_path / "before"
    assert command("evaluate", "random", "--env", name, "--limit", 2, "--out", before).code == 0
    for words in (["--env", name], ["--env", name, "--panel", before / "panel.json", "--repeats", 2]):
        refused = command("evaluate", f"replay:{before}", *words)
        assert refused.code == 2 and f"--panel {before}/panel.json" in refused.err
    missing = command("evaluate", f"replay:{tmp_path / 'nowhere'}", "--env", name)
    assert missing.code == 2 and "replay:FOLDER" in missing.err
    tuned = command("evaluate", f"replay:{before}", "--env", name, "--sampling.temperature", "0")
    assert tuned.code == 2 and "has no effect" in tuned.err


def turns(folder: Path) -> list[list]:
    columns = ("task", "member", "turn", "action", "observation", "reward")
    return [[row[column] for column in columns] for row in read_turns(folder / "turns.parquet")]


def summary(folder: Path) -> dict:
    return json.loads((folder / "summary.json").read_text())
