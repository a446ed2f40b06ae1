"""Panels: what would make two results on "the same" tasks incomparable."""

import json
import subprocess
import sys

import pytest

from manyturn.envs.classics.maze import Maze
from manyturn.envs.contract.atomic_files import replace_file, replace_text
from manyturn.envs.contract.tasks.panel import Panel, PanelError, make_panel, overlap
from manyturn.envs.contract.tasks.task import Task

pytestmark = pytest.mark.versions

MAZE = "manyturn/Maze-v0"


def maze_panel(limit=5, split="test"):
    return make_panel(Maze().tasks(split), MAZE, split, limit)


def test_another_process_gets_the_same_hash():
    code = (
        "from manyturn.envs.classics.maze import Maze; from manyturn.envs.contract.tasks.panel import make_panel;"
        f"print(make_panel(Maze().tasks('test'), {MAZE!r}, 'test', 5).hash)"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == maze_panel().hash


def test_the_hash_tells_tasks_environments_and_orders_apart():
    panel = maze_panel()
    back = Panel(MAZE, "test", panel.tasks[::-1], panel.contents[::-1])
    elsewhere = Panel("manyturn/Other-v0", "test", panel.tasks, panel.contents)
    assert len({panel.hash, maze_panel(4).hash, maze_panel(5, "train").hash, back.hash, elsewhere.hash}) == 5


def test_a_file_in_another_folder_is_the_same_environment():
    one, other = (Panel(f"{folder}/mine.py:Env", "test", ("a",), ("c",)) for folder in ("/home/a", "/srv/b"))
    assert one.hash == other.hash and one.id == "mine.py:Env/test/1"


def test_a_problem_under_two_names_is_counted_once():
    tasks = [Task(str(i), "test", {"problem": i // 2}) for i in range(6)]
    assert make_panel(tasks, "e", "test", 3).tasks == ("0", "2", "4")
    assert make_panel(tasks, "e", "test").tasks == ("0", "2", "4")
    assert make_panel(tasks, "e", "test", 4).id == "e/test/3", "a small split gives a small panel, and its name says so"
    with pytest.raises(PanelError):
        make_panel([], "e", "test", 4)


def test_a_long_generated_split_is_read_only_as_far_as_needed():
    tasks = Maze().tasks("train")
    assert len(tasks) == 1_000_000
    assert make_panel(tasks, MAZE, "train", 3).tasks == ("train/easy/0", "train/easy/1", "train/easy/2")


def test_an_empty_panel_is_refused():
    for limit in (0, None):
        with pytest.raises(PanelError):
            make_panel([], "e", "test", limit)


def test_saved_and_loaded_panels_are_equal(tmp_path):
    panel = make_panel(Maze(difficulty="hard").tasks("test"), MAZE, "test", 5, {"difficulty": "hard"})
    panel.save(tmp_path / "panel.json")
    loaded = Panel.load(tmp_path / "panel.json", Maze(difficulty="hard").tasks("test"))
    assert loaded == panel and loaded.hash == panel.hash and loaded.args == {"difficulty": "hard"}


def test_a_task_that_became_another_problem_is_refused_with_the_mend(tmp_path):
    maze_panel().save(tmp_path / "panel.json")
    changed = [Task(task.id, "test", {"rewritten": True}) for task in Maze().tasks("test")[:5]]
    with pytest.raises(PanelError, match=r"'test/easy/0' is another problem .* or make a new panel"):
        Panel.load(tmp_path / "panel.json", changed)
    with pytest.raises(PanelError, match="does not exist"):
        Panel.load(tmp_path / "panel.json", Maze(difficulty="hard").tasks("test"))


def test_an_edited_or_foreign_file_is_refused():
    plain = json.loads(maze_panel().to_json())
    for edit in ({"tasks": plain["tasks"][:3]}, {"env": "manyturn/Other-v0"}):
        with pytest.raises(PanelError, match="it was edited"):
            Panel.from_json(json.dumps(plain | edit))
    for foreign in ("", "[]", "{}", '{"tasks": 1}', json.dumps(plain | {"tasks": []})):
        with pytest.raises(PanelError, match="not a panel"):
            Panel.from_json(foreign)
    with pytest.raises(PanelError, match="schema version 99"):
        Panel.from_json(json.dumps(plain | {"schema_version": 99}))


def test_overlap_is_found_by_content_under_whatever_id():
    panel = maze_panel()
    renamed = {Task("train/mine", "train", task.params).content for task in Maze().tasks("test")[1:3]}
    assert overlap(panel, renamed) == ["test/easy/1", "test/easy/2"]
    assert overlap(panel, set(panel.tasks)) == []


def test_a_write_that_fails_leaves_the_old_file_and_no_other(tmp_path):
    file = tmp_path / "panel.json"
    replace_text(file, "old")

    def half(aside):
        aside.write_text("ha")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        replace_file(file, half)
    assert file.read_text() == "old" and list(tmp_path.iterdir()) == [file]
