"""Software tasks as folders of Harbor, which grade themselves in a container.

Source of the format: the package harbor 0.25.0, ``harbor.models.task``.
"""

import gzip
import json
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import manyturn
from manyturn.envs.contract.tasks.panel import Panel
from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.hosting.handle.env_handle import EnvHandle
from manyturn.envs.software import reward_levels
from manyturn.envs.software.env import TEST_SECONDS, Software, first_text
from manyturn.envs.software.grading import standalone_grader
from manyturn.envs.software.grading.grader import MADE_FOLDERS, RUNNER, STEERING, carries
from manyturn.envs.software.source.file_tree import snapshot_of
from manyturn.envs.software.source.problem import Problem
from manyturn.envs.software.testing.expected_failures import expected_to_fail
from manyturn.envs.software.testing.pytest_run import OPTIONS
from manyturn.envs.software.workspace.expert import next_edit
from manyturn.export.exported_env import PANEL
from manyturn.export.task_dataset import panel_table

_TOML = """\
schema_version = "1.4"

[task]
name = "manyturn/{name}"
description = "A bug in a program: {env} of manyturn {version}"

[metadata]
task = {task}
split = "{split}"
content = "{content}"
# The verdict is of the container that ran the agent's program, which could forge it: no answer is compared outside.
guard = "none"

[environment]
network_mode = "no-network"
cpus = 1
memory_mb = 1024

[verifier]
timeout_sec = {seconds:.1f}
"""
_INSTRUCTION = """\
A program in /workspace has a bug. Find it, and fix it in the program's source files. There is no network. Tests
decide whether the bug is fixed: failing tests must pass, and passing tests must still pass. They run on a clean copy
with your changes to source files; changes to tests and settings do not count.

{text}
"""
_DOCKERFILE = """\
# manyturn images build makes manyturn-python:1 from Debian's packages: Python, pytest and git
FROM {image}
WORKDIR /workspace
COPY files/ ./
"""
_TEST = "#!/bin/bash\nexec python3 -s -B /tests/grade.py\n"
_SOLVE = """\
#!/bin/bash
cd /workspace
python3 - <<'END-OF-FIX'
from pathlib import Path

for path, old, new in [
{edits}]:
    file = Path(path)
    text = file.read_bytes().decode(errors="surrogateescape") if old else ""
    assert not old or text.count(old) == 1
    file.write_bytes((text.replace(old, new) if old else new).encode(errors="surrogateescape"))
END-OF-FIX
"""
_MEANT = ("no source file is changed", "tests fail", "all tests pass")
_README = """\
# {env} as tasks of Harbor

Written by manyturn {version}. The image that the tasks begin from is made by `manyturn images build`. Each split is a
folder of tasks:

```sh
harbor run --path {first} --agent oracle
manyturn evaluate expert --env harbor:. --split {first}
```

{table}

Rewards are the outcomes of manyturn's episodes: {outcomes}. The rewards of turns are not
in a folder. Nor is the check of answers outside of the container: sources that are tested could forge a verdict here.
Compare it with manyturn's measure `official`.

The files `*{panel}` pin the tasks for `manyturn evaluate --panel`.
"""


def write_tasks(out: Path, handle: EnvHandle, panels: Mapping[str, Panel]) -> None:
    """Write a folder for each task of each split, and what is to be known of them.

    Raises:
        ValueError: the environment's tasks are not judged by a script in a container.
    """
    env, played = next(iter(panels.values())).env, handle.env.unwrapped
    if not isinstance(played, Software):
        raise ValueError(
            f"{env} is not judged by a script in a container, as Harbor's tasks are: export software tasks"
        )
    about = {"env": env, "version": manyturn.__version__, "image": played.image}
    outcomes = {"empty": played.outcome_of(reward_levels.EMPTY), "failing": played.outcome_of(reward_levels.FAILING)}
    outcomes["resolved"] = played.outcome_of(reward_levels.RESOLVED)
    for split, panel in panels.items():
        for task in panel.find(handle.tasks(split)):
            _write_task(out / split / _name(task), task, played.problem_of(task), about, outcomes)
    meanings = ", ".join(f"{value:g} where {what}" for value, what in zip(outcomes.values(), _MEANT, strict=True))
    words = {**about, "first": next(iter(panels)), "table": panel_table(panels), "panel": PANEL, "outcomes": meanings}
    (out / "README.md").write_text(_README.format(**words), encoding="utf-8")


def _name(task: Task) -> str:
    """A folder's name, which Harbor takes for a task's too."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", task.id.removeprefix(f"{task.split}/")).strip("-._")


def _write_task(
    folder: Path, task: Task, problem: Problem, about: Mapping[str, str], outcomes: Mapping[str, float]
) -> None:
    seconds = 2.5 * TEST_SECONDS
    settings = {"name": folder.name, "task": json.dumps(task.id), "split": task.split, "content": task.content}
    texts = {
        "task.toml": _TOML.format(**about, **settings, seconds=2 * seconds),
        "instruction.md": _INSTRUCTION.format(text=first_text(problem)),
        "environment/Dockerfile": _DOCKERFILE.format(**about),
        "tests/test.sh": _TEST,
        "tests/grade.py": Path(standalone_grader.__file__).read_text(encoding="utf-8"),
        "tests/task.json": json.dumps(_graded(problem, outcomes), indent=1) + "\n",
        "solution/solve.sh": _SOLVE.format(edits="".join(_edits(problem))),
    }
    files = {path: text.encode(errors="surrogateescape") for path, text in texts.items()}
    files |= {f"environment/files/{path}": content for path, content in problem.files.items()}
    for name, tree in (("files", problem.files), ("tests", problem.tests)):
        files[f"tests/{name}.tar.gz"] = gzip.compress(snapshot_of(tree).archive, mtime=0)
    for path, content in files.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
        if path.endswith(("test.sh", "solve.sh")) and path.count("/") == 1:
            place.chmod(0o755)


def _graded(problem: Problem, outcomes: Mapping[str, float]) -> dict[str, Any]:
    """Facts that a folder's grader needs."""
    ids = (*problem.fail_to_pass, *problem.pass_to_pass)
    above = {path.rpartition("/")[0] for path in problem.files}
    folders = {"", *(folder[:end] for folder in above for end in (*_slashes(folder), len(folder)))}
    return {
        "fail_to_pass": problem.fail_to_pass,
        "pass_to_pass": problem.pass_to_pass,
        "expected_to_fail": sorted(expected_to_fail(problem.tests, ids)),
        "files": sorted(path for path in problem.files if carries(problem, path)),
        "folders": {one: problem.counts(f"{one}/manyturn_new.py".lstrip("/")) for one in sorted(folders)},
        "steering": sorted(STEERING),
        "not_in": MADE_FOLDERS,
        "taken": sorted(sys.stdlib_module_names | RUNNER),
        "options": OPTIONS,
        "seconds": int(TEST_SECONDS),
        "outcomes": dict(outcomes),
    }


def _slashes(path: str) -> Iterable[int]:
    return (place for place, sign in enumerate(path) if sign == "/")


def _edits(problem: Problem) -> Iterable[str]:
    """Replacements that lead to the fix, as lines of Python."""
    files = dict(problem.files)
    while (edit := next_edit(problem.fix, files.get)) is not None:
        before = files.get(edit.path, b"").decode(errors="surrogateescape")
        after = before.replace(edit.old, edit.new) if edit.old else edit.new
        files[edit.path] = after.encode(errors="surrogateescape")
        yield f"    ({edit.path!r}, {edit.old!r}, {edit.new!r}),\n"
