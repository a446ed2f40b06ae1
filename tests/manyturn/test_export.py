"""``manyturn export``: packages over other files, tasks that are others than those that were exported."""

import json
from importlib.util import find_spec
from pathlib import Path

import pytest
from needs import absent

import manyturn as mt
from manyturn.envs.contract.tasks.panel import PanelError
from manyturn.export.export import class_name
from manyturn.export.exported_env import Exported, episode_seed

SAFE = """\
import manyturn as mt


class Safe(mt.TextEnv):
    def tasks(self, split):
        first = self.splits.index(split) * 100
        return [mt.Task(f"{split}/{i}", split, {"n": first + i}) for i in range(5)]

    def begin(self, task, rng):
        return f"safe {task.params['n']} {rng.integers(1000)}"

    def respond(self, action):
        return self.succeed("open")
"""


def exported(command, tmp_path: Path, *words: str) -> Path:
    (tmp_path / "safe.py").write_text(SAFE)
    out = tmp_path / "out"
    ended = command("export", f"{tmp_path / 'safe.py'}:Safe", "--as", "verifiers", "--out", out, *words)
    assert ended.code == 0 and "test: 5 tasks, hash" in ended.out, ended.err
    return out / "manyturn_safe"


def test_a_package_has_its_tasks_by_split_and_its_own_file(command, tmp_path):
    folder = exported(command, tmp_path, "--env.args.max_turns", "3")
    world = Exported.read(folder)
    (tmp_path / "safe.py").unlink()
    assert world.splits == ["test", "train", "validation"] and dict(world.args) == {"max_turns": 3}
    assert [task.id for task in world.tasks("test")] == [f"test/{i}" for i in range(5)]
    assert len({episode_seed(task) for split in world.splits for task in world.tasks(split)}) == 15
    assert 'packages = ["manyturn_safe"]' in (folder.parent / "pyproject.toml").read_text()
    compile((folder / "__init__.py").read_text(), "module", "exec")
    with pytest.raises(PanelError, match="has no split 'exam'; it has test, train, validation"):
        world.tasks("exam")


def test_a_split_of_which_a_part_is_exported_says_so(command, tmp_path):
    (tmp_path / "safe.py").write_text(SAFE)
    words = ("--as", "verifiers", "--out", tmp_path / "out", "--limit", 4)
    assert (
        "train: the first 4 tasks, see --limit, hash" in command("export", f"{tmp_path / 'safe.py'}:Safe", *words).out
    )


def test_a_task_that_has_changed_since_is_refused(command, tmp_path):
    folder = exported(command, tmp_path)
    (folder / "safe.py").write_text(SAFE.replace("first + i}", "first + i + 50}"))
    with pytest.raises(PanelError, match="is another problem than when the panel was made"):
        Exported.read(folder).tasks("test")
    panel = json.loads((folder / "train.panel.json").read_text())
    panel["tasks"].pop()
    (folder / "train.panel.json").write_text(json.dumps(panel))
    with pytest.raises(PanelError, match="it was edited"):
        Exported.read(folder).tasks("train")


def test_a_class_that_begins_with_a_digit_is_a_package_that_compiles(command, tmp_path):
    (tmp_path / "3d.py").write_text(SAFE)
    ended = command("export", f"{tmp_path / '3d.py'}:Safe", "--as", "verifiers", "--out", tmp_path / "safe")
    assert ended.code == 0, ended.err
    assert class_name("lab/3DMaze-v0") == "World3DMaze" and class_name("manyturn/Household-v0") == "Household"


@pytest.mark.parametrize("file", ['ev"il.py', 'a"""b.py', "two\nlines.py"])
def test_a_name_that_would_be_code_in_the_package_is_refused(command, tmp_path, file):
    (tmp_path / file).write_text(SAFE)
    ended = command("export", f"{tmp_path / file}:Safe", "--as", "verifiers", "--out", tmp_path / "out")
    assert ended.code == 2 and "would stand in code" in ended.err and not (tmp_path / "out").exists()


def test_a_split_that_would_be_a_path_is_refused(command, tmp_path):
    (tmp_path / "safe.py").write_text(
        SAFE.replace("    def tasks", "    splits = ('train', '../outside')\n\n    def tasks")
    )
    ended = command("export", f"{tmp_path / 'safe.py'}:Safe", "--as", "verifiers", "--out", tmp_path / "out")
    assert ended.code == 2 and "cannot be a file" in ended.err and not (tmp_path / "out").exists(), ended.err


def test_an_environment_of_another_project_is_not_exported(command, tmp_path):
    ended = command("export", "openenv:http://127.0.0.1:9", "--as", "verifiers", "--out", tmp_path / "out")
    assert ended.code == 2 and "is another project's" in ended.err


def test_nothing_is_written_over(command, tmp_path):
    folder = exported(command, tmp_path)
    before = {path: path.read_bytes() for path in folder.parent.rglob("*") if path.is_file()}
    again = command("export", "manyturn/Maze-v0", "--as", "verifiers", "--out", folder.parent)
    assert again.code == 2 and "is there already" in again.err
    assert before == {path: path.read_bytes() for path in folder.parent.rglob("*") if path.is_file()}


def test_what_is_no_export_is_said(tmp_path):
    (tmp_path / "world.json").write_text("{}")
    with pytest.raises(ValueError, match="is not what manyturn export wrote"):
        Exported.read(tmp_path)


def test_a_data_set_begins_each_task_as_the_environment_does(command, tmp_path):
    (tmp_path / "safe.py").write_text(SAFE)
    out = tmp_path / "out"
    words = ("--as", "dataset", "--out", out, "--limit", 3, "--env.args.max_turns", 4)
    ended = command("export", f"{tmp_path / 'safe.py'}:Safe", *words)
    assert ended.code == 0, ended.err
    (tmp_path / "safe.py").unlink()
    world = Exported.read(out)
    env = mt.make(world.name, **world.args)
    for split in world.splits:
        rows = [json.loads(line) for line in (out / "data" / f"{split}.jsonl").read_text().splitlines()]
        assert [(row["task"], row["content"]) for row in rows] == [(t.id, t.content) for t in world.tasks(split)]
        for row in rows:
            observation, info = env.reset(seed=row["seed"], options={"task": row["task"]})
            assert row["prompt"][-1] == {"role": "user", "content": observation}
            assert (row["split"], row["task"]) == (info["split"], info["task"])
    assert len({row["prompt"][-1]["content"] for row in rows}) == 3
    card = (out / "README.md").read_text()
    yaml = pytest.importorskip("yaml")
    about = yaml.safe_load(card.split("---\n")[1])
    assert "rl-environment" in about["tags"] and about["task_categories"] == ["reinforcement-learning"]
    assert about["license"] == "unknown" and about["size_categories"] == ["n<1K"]
    assert all((out / file["path"]).is_file() for file in about["configs"][0]["data_files"])
    assert f'mt.make("{Path(world.name).relative_to(out)}' in card
    for split in world.splits:
        panel = out / f"{split}.panel.json"
        assert command("panel", "verify", panel).code == 2  # a file's code is not run because a panel names it
        trusted = ("--env", world.name, "--env.args", "{max_turns = 4}")
        assert command("panel", "verify", panel, *trusted).code == 0
        assert json.loads(panel.read_text())["hash"] in card


@pytest.mark.parametrize("env", ["manyturn/Maze-v0", "safe.py:Safe"])
def test_a_data_set_is_read_by_the_hubs_own_library(env, command, tmp_path, monkeypatch):
    if find_spec("datasets") is None:
        absent("DATASETS", "datasets is missing: pip install datasets")
    from datasets import load_dataset

    monkeypatch.chdir(tmp_path)
    Path("safe.py").write_text(SAFE)
    out = tmp_path / "sets" / "safe"  # with safe.py at its top it would be taken for a script
    assert command("export", env, "--as", "dataset", "--out", out, "--limit", 4).code == 0
    read = load_dataset(str(out), cache_dir=str(tmp_path / "cache"))
    assert set(read) == {"train", "validation", "test"}
    for split, rows in read.items():
        assert rows.to_list() == [
            json.loads(line) for line in (out / "data" / f"{split}.jsonl").read_text().splitlines()
        ]


def test_a_data_set_of_a_file_is_no_loading_script(command, tmp_path):
    (tmp_path / "safe.py").write_text(SAFE)
    out = tmp_path / "sets" / "safe"
    assert command("export", f"{tmp_path / 'safe.py'}:Safe", "--as", "dataset", "--out", out).code == 0
    assert not list(out.glob("*.py")) and (out / "code" / "safe.py").read_text() == SAFE


UNBEGINNABLE = SAFE.replace('return f"safe', "assert task.params['n'] != 101; return f\"safe")


def test_rows_without_a_first_observation_begin_no_task(command, tmp_path):
    (tmp_path / "safe.py").write_text(UNBEGINNABLE)
    ended = command("export", f"{tmp_path / 'safe.py'}:Safe", "--as", "trl", "--out", tmp_path / "out")
    assert ended.code == 0, ended.err
    rows = [json.loads(line) for line in (tmp_path / "out" / "data" / "validation.jsonl").read_text().splitlines()]
    assert [row["task"] for row in rows] == [f"validation/{i}" for i in range(5)]
    assert all(row["prompt"][-1] == {"role": "user", "content": ""} for row in rows)


def test_a_task_that_cannot_be_begun_leaves_no_data_set(command, tmp_path):
    (tmp_path / "safe.py").write_text(UNBEGINNABLE)
    ended = command("export", f"{tmp_path / 'safe.py'}:Safe", "--as", "dataset", "--out", tmp_path / "out")
    assert ended.code != 0 and "AssertionError" in ended.err and not (tmp_path / "out").exists(), ended.err
