"""Files that cannot be loaded because they import what lies next to them, or are given another file of that name."""

import json
import re
import sys

import pytest

from manyturn.envs.contract.registration.env_registry import load_file
from manyturn.envs.contract.registration.sibling_modules import NamesakeError, source_files

pytestmark = pytest.mark.versions

ROOMS = """
import manyturn as mt

class Rooms(mt.TextEnv):
    instructions = "Commands: left, right."
    max_turns = 3

    def tasks(self, split):
        return [mt.Task(f"{split}/{i}", split, {"i": i}) for i in range(4)]

    def begin(self, task, rng):
        self.right = "right" if task.params["i"] % 2 else "left"
        return f"The {self.right} door is open."

    def respond(self, action):
        return self.succeed("Through.") if action == self.right else self.invalid("Shut.")

    def admissible(self):
        return ["left", "right"]
"""
HARD = """
from rooms_next_door import Rooms

class Hard(Rooms):
    def respond(self, action):
        from words_next_door import SHUT
        return super().respond(action) if action == self.right else self.fail(SHUT)
"""
POLICY = """
import choice_next_door

def policy(observation, info):
    return choice_next_door.choose(observation)
"""


@pytest.fixture(autouse=True)
def search_path(monkeypatch):
    """What a test adds to the search path, and loads, ends with the test."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.endswith("_next_door"):
            del sys.modules[name]


@pytest.fixture
def hard(tmp_path):
    folder = tmp_path / "envs"
    folder.mkdir()
    (folder / "rooms_next_door.py").write_text(ROOMS)
    (folder / "words_next_door.py").write_text("SHUT = 'Shut for good.'\n")
    (folder / "hard.py").write_text(HARD)
    return f"{folder}/hard.py:Hard"


def test_an_environment_in_two_files_is_checked(command, hard):
    ended = command("check", hard, "--samples", 2)
    assert re.search("passed +made", ended.out) and re.search("passed +spaces", ended.out), ended


def test_policy_and_environment_in_two_files_play_in_this_process_and_in_a_worker(command, hard, tmp_path):
    (tmp_path / "choice_next_door.py").write_text("def choose(text):\n    return text.split()[1]\n")
    (tmp_path / "pol.py").write_text(POLICY)
    words = ("--env", hard, "--limit", 2, "--workers", 1, "--out", tmp_path / "found")
    ended = command("evaluate", f"{tmp_path}/pol.py:policy", *words)
    assert ended.code == 0, ended
    assert json.loads((tmp_path / "found" / "summary.json").read_text())["success"]["mean"] == 1


def test_a_neighbour_with_the_name_of_a_module_from_another_folder_is_refused(tmp_path):
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "same_next_door.py").write_text(f"WHERE = {folder!r}\n")
        (tmp_path / folder / "main.py").write_text(
            "def where():\n    import same_next_door\n    return same_next_door\n"
        )
    assert load_file(tmp_path / "one" / "main.py").where().WHERE == "one"
    with pytest.raises(NamesakeError, match=r"one/same_next_door\.py, not .*two/same_next_door\.py: rename"):
        load_file(tmp_path / "two" / "main.py")


@pytest.mark.parametrize("name", ["json", "sys", "pytest"])
def test_a_neighbour_with_the_name_of_an_installed_module_is_refused_only_if_it_is_imported(tmp_path, name):
    (tmp_path / f"{name}.py").write_text("")
    (tmp_path / "lonely.py").write_text("import math\n")
    load_file(tmp_path / "lonely.py")
    (tmp_path / "main.py").write_text(f"from {name} import mine\n")
    with pytest.raises(NamesakeError, match=f"imports {name}, which in this process is .*: rename"):
        load_file(tmp_path / "main.py")


def test_a_policy_is_another_one_once_a_file_that_it_imports_by_way_of_others_has_changed(tmp_path):
    for name, text in (("a", "import b_next_door"), ("b_next_door", "import c_next_door"), ("d", "")):
        (tmp_path / f"{name}.py").write_text(text)
    (tmp_path / "c_next_door").mkdir()
    for name in ("__init__", "part"):
        (tmp_path / "c_next_door" / f"{name}.py").write_text("")
    found = [str(path.relative_to(tmp_path)) for path in source_files(tmp_path / "a.py")]
    assert found == ["a.py", "b_next_door.py", "c_next_door/__init__.py", "c_next_door/part.py"]
