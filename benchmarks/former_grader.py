"""The grader of software tasks as it was at a commit, next to the one that is checked out.

Its files are read from the history and imported under a name of their own, so both grade the same problems in the same
sandboxes within one process.
"""

import subprocess
import sys
import tarfile
import tempfile
from functools import cache
from importlib import import_module
from io import BytesIO
from pathlib import Path
from types import ModuleType

from provenance import ROOT

TRUSTING = "9e80b72"
"""The last commit whose grader believes what the graded process reports, apart from a twin run."""
_PACKAGE, _FOLDER = "manyturn.envs.software", "envs/software"


@cache
def grader_at(commit: str) -> ModuleType:
    """The module ``grader`` of a commit. Raises SystemExit where the history does not have it."""
    found = subprocess.run(["git", "rev-parse", "--verify", "--short", f"{commit}^{{commit}}"], **_quiet())
    if found.returncode:
        raise SystemExit(f"this checkout has no commit {commit}: git fetch --unshallow")
    name = f"software_at_{found.stdout.decode().strip()}"
    packed = subprocess.run(["git", "archive", "--format=tar", commit, _FOLDER], **_quiet(), check=True).stdout
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=BytesIO(packed)) as archive:
            archive.extractall(folder, filter="data")
        (Path(folder) / _FOLDER).rename(Path(folder, name))
        for file in Path(folder, name).rglob("*.py"):
            file.write_text(file.read_text().replace(_PACKAGE, name))
        sys.path.insert(0, folder)
        try:
            return import_module(f"{name}.grader")  # it imports, and reads, all that it needs
        finally:
            sys.path.remove(folder)


def _quiet() -> dict:
    return {"cwd": ROOT, "capture_output": True}
