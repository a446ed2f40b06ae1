"""Files are found in a checkout as well, and no file is run or believed."""

import json
from pathlib import Path

import pytest

from manyturn.envs.benchmarks.tau.files import DataError, Files
from manyturn.envs.benchmarks.tau.v1.domains import load
from manyturn.envs.benchmarks.tau.v1.env import TauBench

TASKS = """
from tau_bench.types import Task, Action

TASKS_TEST = [
    Task(annotator="0", user_id="ada_stone_1234", instruction="You want your lamp's " "price.",
         actions=[Action(name="get_order_details", kwargs={"order_id": "#W1000002"})], outputs=["10.1"]),
]
"""
TOOL = """
class GetOrderDetails(Tool):
    @staticmethod
    def get_info():
        return {"type": "function", "function": {"name": NAME, "description": "Look.", "parameters": {}}}
"""


def checkout(folder: Path, small: Path) -> Path:
    """The layout of the original's repository."""
    from manyturn.envs.benchmarks.tau.v1.retail import TOOLS

    domain = folder / "tau_bench" / "envs" / "retail"
    (domain / "data").mkdir(parents=True)
    (domain / "tools").mkdir()
    for name in ("orders", "products", "users"):
        (domain / "data" / f"{name}.json").write_bytes((small / "v1" / "retail" / f"{name}.json").read_bytes())
    for name in TOOLS:
        (domain / "tools" / f"{name}.py").write_text(TOOL.replace("NAME", repr(name)))
    for split in ("train", "dev", "test"):
        (domain / f"tasks_{split}.py").write_text(TASKS)
    (domain / "wiki.md").write_text("Be kind.")
    return folder


def test_a_checkout_of_the_original_is_enough(small, tmp_path: Path) -> None:
    env = TauBench("test", checkout(tmp_path, small), pinned=False)
    (task,) = env.tasks("test")
    assert task.params["say"] == ["10.1"] and task.params["scenario"] == "You want your lamp's price."
    assert [one["function"]["name"] for one in env.tools] == [one.name for one in env._toolset._tools.values()]
    assert env.instructions.startswith("Be kind.") and '"get_order_details"' in env.instructions


def test_nothing_in_a_file_of_tasks_is_run(small, tmp_path: Path) -> None:
    folder, trap = checkout(tmp_path, small), tmp_path / "trap"
    tasks = folder / "tau_bench" / "envs" / "retail" / "tasks_test.py"
    tasks.write_text(f"TASKS = [Task(user_id=open({str(trap)!r}, 'w'))]")
    with pytest.raises(DataError, match="is not as the benchmark's files are"):
        TauBench("test", folder, pinned=False)
    assert not trap.exists()


@pytest.mark.parametrize("content", ["", "{", "[]", '{"test": [{}]}', '{"test": [3]}', "[" * 100_000])
def test_a_damaged_file_is_told_in_one_line(content: str, small, tmp_path: Path) -> None:
    folder = checkout(tmp_path, small)
    (folder / "tau_bench" / "envs" / "retail" / "data" / "tasks.json").write_text(content)
    with pytest.raises(DataError) as caught:
        TauBench("test", folder, pinned=False)
    assert "\n" not in str(caught.value)


def test_the_pinned_files_are_the_official_ones(official) -> None:
    for version, domain, names in (
        ("v1", "retail", ("orders.json", "wiki.md")),
        ("v1", "airline", ("flights.json", "users.json")),
        ("v2", "telecom", ("db.toml", "split_tasks.json")),
    ):
        for name in names:
            assert Files(official, version, domain).read(name)
    assert len(json.loads(Files(official, "v2", "retail").read("tasks.json"))) == 114


def test_changed_tasks_are_not_those_of_the_release(official, tmp_path: Path) -> None:
    folder = tmp_path / "v1" / "airline"
    folder.mkdir(parents=True)
    for file in (official / "v1" / "airline").iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    assert len(TauBench("test", tmp_path, "airline").tasks("test")) == 50
    tasks = (folder / "tasks.json").read_text().replace("You do not want insurance", "You want insurance")
    (folder / "tasks.json").write_text(tasks)
    load.cache_clear()
    with pytest.raises(DataError, match="not those of the release"):
        TauBench("test", tmp_path, "airline")
    assert TauBench("test", tmp_path, "airline", pinned=False).tasks("test")
