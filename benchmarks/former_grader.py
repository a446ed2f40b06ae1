"""The grader of software tasks as it was at a commit, next to the one that is checked out.

Its files are read from the history and imported under a name of their own, so both grade the same problems in the same
sandboxes within one process.
"""

import re
import subprocess
import sys
import tempfile
import zipfile
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
    found = subprocess.run(["git", "archive", "--format=zip", commit, _FOLDER], **_quiet())
    if found.returncode:
        raise SystemExit(f"this checkout has no {_FOLDER} at commit {commit}: git fetch --unshallow")
    name = "software_at_" + re.sub(r"\W", "_", commit)
    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(BytesIO(found.stdout)) as archive:
            archive.extractall(folder)
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
