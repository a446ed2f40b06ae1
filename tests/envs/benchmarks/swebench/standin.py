"""A small repository with a history, in an image as SWE-bench's are: in place of official ones."""

import io
import json
import tarfile
from pathlib import Path
from typing import Any

import docker

from manyturn.containers.engine import owner
from manyturn.containers.engine.container_engine import LABEL

SOURCE = '''"""Sums."""


def total(numbers):
    result = 0
    for number in numbers:
        result = number
    return result
'''
MENDED = SOURCE.replace("result = number", "result += number")
TESTS = """from sums import total


def test_of_nothing():
    assert total([]) == 0
"""
MORE_TESTS = (
    TESTS
    + """

def test_of_two():
    assert total([1, 2]) == 3
"""
)
TEST_PATCH = """diff --git a/tests/test_sums.py b/tests/test_sums.py
--- a/tests/test_sums.py
+++ b/tests/test_sums.py
@@ -3,3 +3,7 @@
 
 def test_of_nothing():
     assert total([]) == 0
+
+
+def test_of_two():
+    assert total([1, 2]) == 3
"""
GOLD = """diff --git a/sums.py b/sums.py
--- a/sums.py
+++ b/sums.py
@@ -4,5 +4,5 @@
 def total(numbers):
     result = 0
     for number in numbers:
-        result = number
+        result += number
     return result
"""
FAULT = GOLD.replace("-        result = number", "-        result += number").replace(
    "+        result += number\n     return", "+        result = number\n     return"
)
_LABEL = "manyturn.standin"
SECRET = "the-mend-is-plus-equals"

# Everything that may tell of the future: branches, tags, a stash, notes, a remote, reflogs, an amended commit.
_HISTORY = f"""
set -eu
export HOME=/root GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
export GIT_AUTHOR_DATE=2020-01-01T00:00:00Z GIT_COMMITTER_DATE=2020-01-01T00:00:00Z
mkdir -p /testbed && cd /testbed && cp -r /files/start/. . && git init -q -b main . && git config gc.auto 0
git add -A && git commit -q -m 'The first' && echo a > NOTES && git add -A && git commit -q -m 'The second'
git tag v1
BASE=$(git rev-parse HEAD)
echo "base=$BASE"
cp -r /files/later/. . && git add -A && git commit -q -m '{SECRET}' && git tag -a v2 -m '{SECRET} tagged'
git notes add -m '{SECRET} noted' && git branch future && git update-ref refs/pull/1/head HEAD
git commit -q --amend -m '{SECRET} amended' && git update-ref refs/remotes/origin/main HEAD
git remote add origin https://example.org/x.git
git reset -q --hard "$BASE"
echo '{SECRET} stashed' >> sums.py && git stash -q
git replace v1 future || true
printf '[x]\n\tsecret = {SECRET}\n' >> .git/config
echo '#!/bin/sh' > .git/hooks/post-checkout && chmod +x .git/hooks/post-checkout
git log -1 --format=%s
"""


class Standin:
    """An image with the repository below /testbed.

    Args:
        files: further files, path from the root -> content.
        mended: the commit to start from has the mend and the tests for it, as in SWE-smith.

    Attributes:
        name: of the image.
        base: the commit that the agent is to start from.
    """

    def __init__(self, image: str, name: str, files: dict[str, str] | None = None, mended: bool = False):
        self.name, client = name, docker.from_env()
        now, tests = (MENDED, MORE_TESTS) if mended else (SOURCE, TESTS)
        start = {
            "sums.py": now,
            "tests/test_sums.py": tests,
            "tests/conftest.py": "import sys; sys.path.insert(0, '.')\n",
        }
        later = {"sums.py": MENDED, "tests/test_sums.py": MORE_TESTS, "FUTURE": SECRET}
        script = f"{_HISTORY}\ncp -r /files/root/. /\nrm -rf /files\n"
        placed = {"files/make": script, "files/root/.made": ""}
        placed |= {f"files/start/{path}": text for path, text in start.items()}
        placed |= {f"files/later/{path}": text for path, text in later.items()}
        placed |= {f"files/root/{path}": text for path, text in (files or {}).items()}
        labels = {LABEL: "1", **owner.this_process().labels}
        container = client.containers.create(
            image, ["bash", "/files/make"], network_mode="none", labels=labels, user="0:0", working_dir="/"
        )
        try:
            container.put_archive("/", _tar(placed))
            container.start()
            status, log = container.wait()["StatusCode"], container.logs().decode()
            assert status == 0, log
            self.base = log.partition("base=")[2].split()[0]
            container.commit(*name.split(":"), changes=f"LABEL {_LABEL}={name}")
        finally:
            container.remove(force=True)

    def row(self, **columns: Any) -> dict[str, Any]:
        """A row of SWE-bench's form about the repository."""
        return {
            "repo": "standin/sums",
            "instance_id": "standin__sums-1",
            "base_commit": self.base,
            "patch": GOLD,
            "test_patch": TEST_PATCH,
            "problem_statement": "total([1, 2]) is 2",
            "hints_text": "Look at the loop.",
            "version": "1",
            "FAIL_TO_PASS": json.dumps(["tests/test_sums.py::test_of_two"]),
            "PASS_TO_PASS": json.dumps(["tests/test_sums.py::test_of_nothing"]),
            "environment_setup_commit": self.base,
            **columns,
        }

    def write(self, file: Path, **columns: Any) -> str:
        """A file of one row."""
        file.write_text(json.dumps(self.row(**columns)) + "\n")
        return str(file)

    def remove(self) -> None:
        """Remove the image, and those that it was prepared into."""
        client = docker.from_env()
        images = client.images.list(filters={"label": f"{_LABEL}={self.name}"})
        for image in sorted(images, key=lambda image: image.attrs["Created"], reverse=True):  # children first
            client.images.remove(image.id, force=True)


def _tar(files: dict[str, str]) -> bytes:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for path, text in files.items():
            member = tarfile.TarInfo(path)
            member.size, member.mode = len(text.encode()), 0o644
            tar.addfile(member, io.BytesIO(text.encode()))
    return archive.getvalue()
