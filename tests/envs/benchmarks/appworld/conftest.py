"""A folder of tasks made here, an interpreter with a stand-in for AppWorld, and the real one where there is one."""

import json
import os
import shutil
import venv
from importlib.util import find_spec
from pathlib import Path

import pytest
from needs import absent

from manyturn.envs.benchmarks.appworld.confinement import CannotConfine, require

SHIMS = {
    "__init__.py": "",
    "apps/__init__.py": "from appworld_standin import get_all_apps",
    "apps/todoist/__init__.py": "",
    "apps/todoist/apis.py": "",
    "serve/__init__.py": "",
    "serve/environment.py": "from appworld_standin import AppWorld, app",
    "evaluator.py": "from appworld_standin import evaluate_task",
}
LISTS = {"train": "one_1\none_2\n", "dev": "two_1:tag\n", "test_normal": "endless_1\n"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder such as ``appworld download data`` makes, with four tasks, for the stand-in."""
    data = tmp_path / "world" / "data"
    for folder in ("datasets", "base_dbs", "api_docs"):
        (data / folder).mkdir(parents=True)
    for name, lines in LISTS.items():
        (data / "datasets" / f"{name}.txt").write_text(lines)
    for task, label in {"one_1": "blue", "one_2": "red", "two_1": "blue", "endless_1": "endless"}.items():
        folder = data / "tasks" / task
        (folder / "ground_truth").mkdir(parents=True)
        (folder / "dbs").mkdir()
        (folder / "specs.json").write_text(json.dumps({"instruction": f"Make the label {label}."}))
        (folder / "ground_truth" / "answer.json").write_text(json.dumps({"label": label}))
        (folder / "ground_truth" / "metadata.json").write_text(json.dumps({"difficulty": 2}))
    return tmp_path / "world"


@pytest.fixture(scope="session")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An interpreter of its own, in which ``appworld`` is the stand-in."""
    folder = tmp_path_factory.mktemp("python")
    venv.create(folder, with_pip=False, symlinks=True)
    (packages,) = folder.glob("lib/python3.*/site-packages")
    for name in ("uvicorn", "click", "h11"):  # copied, for a confined process reads nothing outside
        (source,) = find_spec(name).submodule_search_locations
        shutil.copytree(source, packages / name)
    shutil.copy(Path(__file__).with_name("standin.py"), packages / "appworld_standin.py")
    for name, text in SHIMS.items():
        (packages / "appworld" / name).parent.mkdir(parents=True, exist_ok=True)
        (packages / "appworld" / name).write_text(text)
    return str(folder / "bin" / "python")


@pytest.fixture(scope="session")
def confinable() -> None:
    try:
        require()
    except CannotConfine as reason:
        pytest.skip(f"a process cannot be confined here: {reason}")


@pytest.fixture(scope="session")
def real() -> dict[str, str]:
    """Arguments of an AppWorld that somebody has set up."""
    names = {"python": "MANYTURN_APPWORLD_PYTHON", "root": "MANYTURN_APPWORLD_ROOT"}
    missing = [name for name in names.values() if name not in os.environ]
    if missing:
        absent("APPWORLD", f"no AppWorld: set {' and '.join(missing)}")
    return {argument: os.environ[name] for argument, name in names.items()}
