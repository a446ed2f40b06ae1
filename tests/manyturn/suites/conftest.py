"""An environment of a user's, and a suite of it that takes no time."""

import pytest

import manyturn as mt
from manyturn.envs.contract.registration.env_registry import NeedsSetup

PLAN = """
name = "small"

[[panels]]
name = "stairs"
env = "strangers/Stairs-v0"
tasks = 4

[[panels]]
name = "maze-easy"
env = "manyturn/Maze-v0"
args = { difficulty = "easy" }
tasks = 3

[[panels]]
name = "roof"
env = "strangers/Stairs-v0"
split = "roof"
tasks = 2
need = "data"
"""


class Stairs(mt.TextEnv):
    """Climb to the top."""

    instructions = "Climb or wait."
    splits = ("train", "test", "roof")
    max_turns = 8
    height, top, absent_files = 3, "You are at the top.", False

    def __init__(self, split="test"):
        if self.absent_files:
            raise NeedsSetup('the files of Stairs do not come along: give data="FOLDER"')
        super().__init__(split)

    def tasks(self, split):
        return [mt.Task(f"{split}/{n}", split, {"steps": self.height + n, "at": split}) for n in range(6)]

    def begin(self, task, rng):
        self._left = task.params["steps"]
        return f"{self._left} steps."

    def respond(self, action):
        if action not in ("climb", "wait"):
            return self.invalid("Climb or wait.")
        self._left -= action == "climb"
        return self.go_on(f"{self._left} steps.") if self._left else self.succeed(self.top)

    def admissible(self):
        return ["climb", "wait"]

    def expert(self):
        return "climb"


mt.register("strangers/Stairs-v0", Stairs)


@pytest.fixture
def stairs():
    """The environment's class, whose attributes a test may change."""
    return Stairs


@pytest.fixture
def small(command, monkeypatch, tmp_path):
    """The file of a suite of three panels, one of which needs data; the test's folder is the working folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plan.toml").write_text(PLAN)
    made = command("suite", "freeze", "plan.toml", "--out", "small.json")
    assert made.code == 0, made.err
    return tmp_path / "small.json"
