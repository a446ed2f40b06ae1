"""``manyturn export --as harbor``: folders that pay otherwise than the environment, or change by chance.

The section on Harbor of docs/exporting-tasks.md is about these.
"""

import tomllib
from pathlib import Path

import pytest
from small import CORE, MENDED, Small

import manyturn as mt
from manyturn.agents.records.episode_rows import read_episodes
from manyturn.envs.contract.tasks.panel import make_panel
from manyturn.envs.hosting.handle.env_handle import EnvHandle
from manyturn.envs.tools.calls import call_text
from manyturn.export.exported_env import PANEL
from manyturn.export.harbor import write_tasks

SMALL = Path(__file__).parents[1] / "envs" / "software" / "small.py"
SUBMIT = call_text("submit")


def bash(command: str) -> str:
    return call_text("bash", command=command)


def exported(command, folder: Path, *words: object) -> Path:
    ended = command("export", "manyturn/Software-v0", "--as", "harbor", "--out", folder, *words)
    assert ended.code == 0, ended.err
    return folder


def outcomes(env, task: str, actions: list[str]) -> tuple[float, bool]:
    env.reset(seed=0, options={"task": task})
    for action in actions:
        info = env.step(action)[4]
    return info["reward_parts"]["outcome"], info["success"]


@pytest.mark.deep
def test_exported_tasks_are_solved_by_their_own_solutions_and_keep_splits_and_hashes(command, engine, tmp_path):
    folder = exported(command, tmp_path / "drills", "--env.args.source", "drills", "--limit", 2)
    assert {path.name for path in folder.iterdir()} == {
        *("README.md", "train", "validation", "test"),
        *(f"{split}{PANEL}" for split in ("train", "validation", "test")),
    }
    env = mt.make(f"harbor:{folder}")
    assert [len(env.get_wrapper_attr("tasks")(split)) for split in ("train", "validation", "test")] == [2, 2, 2]
    env.close()
    ended = command("evaluate", "expert", "--env", f"harbor:{folder}", "--split", "test", "--out", tmp_path / "out")
    assert ended.code == 0, ended.err
    assert [episode["return"] for episode in read_episodes(tmp_path / "out" / "episodes.parquet")] == [1, 1]
    words = ("evaluate", "expert", "--panel", folder / f"test{PANEL}", "--out", tmp_path / "ours")
    assert command(*words, "--env", "manyturn/Software-v0").code == 0
    again = exported(command, tmp_path / "again", "--env.args.source", "drills", "--limit", 2)
    files = sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    assert len(files) > 40
    guards = {tomllib.loads(file.read_text())["metadata"]["guard"] for file in folder.rglob("task.toml")}
    assert guards == {"none"}  # who reads a folder and no page must not take its reward for ours
    assert all((again / path).read_bytes() == (folder / path).read_bytes() for path in files)


@pytest.mark.deep
@pytest.mark.parametrize("reward", ["levels", pytest.param("resolved", marks=pytest.mark.slow)])
def test_a_folder_pays_what_the_environment_pays(engine, tmp_path, reward):
    def act(core: str) -> str:
        return bash(f"cat > /workspace/calc/core.py <<'END'\n{core}END")

    handle = EnvHandle(f"{SMALL}:Small", {"reward": reward})
    panels = {"test": make_panel(handle.tasks("test"), f"{SMALL}:Small", "test", 1)}
    write_tasks(tmp_path / "out", handle, panels)
    handle.close()
    ours, theirs = Small(reward=reward), mt.make(f"harbor:{tmp_path / 'out'}")
    tried = {
        "nothing": [],
        "mended": [act(MENDED)],
        "wrong": [act(CORE.replace("a - b", "a * b"))],
        "broken": [act(MENDED.replace("a * 2", "a"))],
        "no python": [act("def\n")],
        "gone": [bash("rm -r calc")],
        "a link": [bash("mv calc/core.py /tmp/core.py; ln -s /tmp/core.py calc/core.py")],
        "only tests and settings": [bash("rm -r tests; echo x > conftest.py; echo x > pytest.ini; echo y > json.py")],
        "settings that spoil": [act(MENDED), bash("printf '[pytest]\\naddopts = --deselect tests\\n' > pytest.ini")],
        "a module of Python": [act(MENDED), bash("echo 'raise SystemExit' > unittest.py; mkdir pytest")],
        "a module of its own": [
            bash("echo 'def add(a, b): return a + b' > calc/more.py"),
            act("from calc.more import add\n" + MENDED),
        ],
        "another folder": [
            bash("mkdir calc/new; echo 'X = 1' > calc/new/x.py; touch calc/new/__init__.py"),
            act("import calc.new.x\n" + MENDED),
        ],
        "an end": [act(f"import os\nos._exit(0)\n{MENDED}")],
    }
    for name, actions in tried.items():
        assert outcomes(theirs, "test/small", [*actions, SUBMIT]) == outcomes(ours, "small", [*actions, SUBMIT]), name
    ours.close()
    theirs.close()


@pytest.mark.slow
def test_tasks_of_a_library_pay_the_same_too(command, engine, tmp_path):
    folder = exported(command, tmp_path / "library", "--limit", 1)
    ours, theirs = mt.make("manyturn/Software-v0", split="smoke"), mt.make(f"harbor:{folder}", split="smoke")
    [task], own = theirs.get_wrapper_attr("tasks")("smoke"), ours.get_wrapper_attr("tasks")("smoke")[0]
    theirs.reset(seed=0, options={"task": task.id})
    solution = theirs.get_wrapper_attr("expert")()
    spoil = bash("echo 'raise ValueError' >> networkx/__init__.py")
    more = "from networkx.algorithms.new import X"
    new = bash(f"echo 'X = 1' > networkx/algorithms/new.py; echo '{more}' >> networkx/__init__.py")
    for actions in (
        [],
        [solution],
        [spoil],
        [solution, spoil],
        [solution, new],
        [bash("rm -r networkx/algorithms/tests")],
    ):
        assert outcomes(theirs, task.id, [*actions, SUBMIT]) == outcomes(ours, own.id, [*actions, SUBMIT]), actions
    ours.close()
    theirs.close()


def test_what_no_script_in_a_container_judges_is_no_task_of_harbor(command, engine, tmp_path):
    ended = command("export", "manyturn/Maze-v0", "--as", "harbor", "--out", tmp_path / "maze")
    assert ended.code == 2 and "is not judged by a script in a container" in ended.err
    words = ("--env.args.source", "drills", "--env.wrappers", '[{name = "turn_cost", cost = 0.01}]')
    ended = command("export", "manyturn/Software-v0", "--as", "harbor", "--out", tmp_path / "cost", *words)
    assert ended.code == 2 and "a task of Harbor has no rewards of turns" in ended.err
    assert not list(tmp_path.iterdir())
