"""Grades a software task inside of a container of Harbor's. The text of this file is ``tests/grade.py`` of its folder.

It stands alone: Python 3.8 and pytest are all it needs. What counts of an agent's changes, and when tests are passed,
is as in ``grader.py``. What that has beyond it is lacking here: no answer is compared outside of the container, so the
sources that are tested could forge the verdict.
"""

import json
import os
import stat
import subprocess
import sys
import tarfile
import tempfile

TESTS, WORKSPACE, REWARD = "/tests", "/workspace", "/logs/verifier/reward.txt"
LEFT_OUT = ("__pycache__", ".pytest_cache")


def tree_of(top):
    """Path -> content of the regular files below a folder; links are left out."""
    outcomes = {}
    for folder, folders, files in os.walk(top):
        folders[:] = [name for name in folders if name not in LEFT_OUT]
        for name in files:
            path = os.path.join(folder, name)
            if stat.S_ISREG(os.lstat(path).st_mode):
                with open(path, "rb") as file:
                    outcomes[os.path.relpath(path, top)] = file.read()
    return outcomes


def counts(path, task, files):
    """True if a new file belongs to the program, and shadows nothing that Python or pytest imports."""
    if not path.isprintable() or not path.endswith(".py") or os.path.basename(path) in task["steering"]:
        return False
    parts = path.split("/")
    if any(part.endswith(tuple(task["not_in"])) for part in parts):
        return False
    folders = ["/".join(parts[:depth]) for depth in range(len(parts))]  # "" is the top
    if any(folder in files for folder in folders) or any(other.startswith(path + "/") for other in files):
        return False
    for depth, folder in enumerate(folders):
        if os.path.join(folder, "__init__.py") not in files and parts[depth].partition(".")[0] in task["taken"]:
            return False
    existing = [folder for folder in folders if folder in task["folders"]]  # a new folder is as the one that it is in
    return bool(existing) and task["folders"][existing[-1]]


def carried(task, before, after):
    """Path -> new content, None where it is gone: the changes that are graded."""
    existing = set(task["files"])
    changed = {path: after.get(path) for path in existing if after.get(path) != before[path]}
    new = {path: content for path, content in after.items() if path not in before and counts(path, task, before)}
    return {**changed, **new}


def found_by(task, top):
    """Outcomes of tests by id and pytest's exit status, from a process of its own; none and -1 if it took too long."""
    environ = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
    environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    with tempfile.NamedTemporaryFile() as report:
        words = [sys.executable, "-s", "-B", os.path.join(TESTS, "grade.py"), report.name]
        script = 'ulimit -S -t "$0"; exec "$@"'
        child = subprocess.Popen(
            ["bash", "-c", script, str(task["seconds"]), *words], cwd=top, env=environ, start_new_session=True
        )
        try:
            status = child.wait(timeout=2.5 * task["seconds"])
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, 9)
            child.wait()
            return {}, -1
        try:
            return json.loads(report.read()), status
        except ValueError:
            return {}, -1


def level(task):
    """The outcome of what lies in the workspace."""
    with tempfile.TemporaryDirectory() as top:
        with tarfile.open(os.path.join(TESTS, "files.tar.gz")) as tar:
            tar.extractall(top)
        changes = carried(task, tree_of(top), tree_of(WORKSPACE))
        if not changes:
            return task["outcomes"]["empty"]
        for path, content in changes.items():
            place = os.path.join(top, path)
            if content is None:
                os.remove(place)
                continue
            os.makedirs(os.path.dirname(place), exist_ok=True)
            with open(place, "wb") as file:
                file.write(content)
        with tarfile.open(os.path.join(TESTS, "tests.tar.gz")) as tar:
            tar.extractall(top)
        outcomes, status = found_by(task, top)
    passed = {test for test, outcome in outcomes.items() if outcome == "passed"}
    passed |= {test for test in task["expected_to_fail"] if outcomes.get(test) == "xfailed"}
    passing = {test for test, outcome in outcomes.items() if outcome != "failed"}
    resolved = status == 0 and passed.issuperset(task["fail_to_pass"]) and passing.issuperset(task["pass_to_pass"])
    return task["outcomes"]["resolved" if resolved else "failing"]


class Outcomes:
    """A plugin of pytest's: keeps the tests that decide, and what becomes of each."""

    def __init__(self, task):
        self.chosen = set(task["fail_to_pass"] + task["pass_to_pass"])
        self.outcomes = {}

    def pytest_collection_modifyitems(self, items):
        items[:] = [item for item in items if item.nodeid in self.chosen]

    def pytest_runtest_logreport(self, report):
        before = self.outcomes.get(report.nodeid)
        if report.failed:
            self.outcomes[report.nodeid] = "failed"
        elif report.skipped and before != "failed":
            self.outcomes[report.nodeid] = "xfailed" if hasattr(report, "wasxfail") else "skipped"
        elif report.when == "call" and before is None:
            self.outcomes[report.nodeid] = "passed"


def run(task, report):
    """Run the tests in the current folder, and write what became of them into a file."""
    import pytest

    top, plugin = os.getcwd(), Outcomes(task)
    sys.path[0] = top
    files = sorted({test.partition("::")[0] for test in plugin.chosen})
    status = int(pytest.main([*task["options"], f"--rootdir={top}", *files], plugins=[plugin]))
    sys.stdout.flush()
    with open(report, "w") as file:
        json.dump(plugin.outcomes, file)
    os._exit(status)


def main():
    with open(os.path.join(TESTS, "task.json")) as file:
        task = json.load(file)
    if len(sys.argv) > 1:
        run(task, sys.argv[1])
    reward = level(task)
    with open(REWARD, "w") as file:
        file.write(repr(float(reward)))


if __name__ == "__main__":
    main()
