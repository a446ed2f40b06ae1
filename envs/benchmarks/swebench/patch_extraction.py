"""Takes what an agent has changed out of its sandbox."""

import base64
import re
from collections.abc import Collection
from pathlib import PurePosixPath

from manyturn.containers.sandbox import WORKSPACE, Sandbox
from manyturn.envs.benchmarks.swebench.image_preparation import PACKED
from manyturn.envs.benchmarks.swebench.rows import Row

LARGEST_PATCH = 500_000
"""Bytes; a patch is also part of the last observation."""
SETUP_SECONDS = 300.0
_PRISTINE = "/tmp/.pristine"
_TEST_FOLDERS = frozenset({"test", "tests", "e2e", "testing"})
_STEERING = frozenset({"conftest.py", "sitecustomize.py", "usercustomize.py"})
_REPOSITORY = f"""
export GIT_DIR={_PRISTINE}/.git GIT_WORK_TREE={WORKSPACE} GIT_LITERAL_PATHSPECS=1 GIT_CONFIG_NOSYSTEM=1 HOME={_PRISTINE}
cd {WORKSPACE} || exit 1
"""
_STAGE = f"""
find /tmp -mindepth 1 -maxdepth 1 -exec chmod -R u+rwX {{}} + 2>/dev/null
find /tmp -mindepth 1 -delete
mkdir {_PRISTINE} && tar -xf {PACKED} -C {_PRISTINE} ./.git || exit 9
{_REPOSITORY}
git add -A && git diff --cached --no-renames --name-only -z HEAD >&3
"""
_UNSTAGE = "git reset -q --pathspec-from-file=- --pathspec-file-nul HEAD"
_TELL = "git diff --cached --binary --no-renames --no-color --no-ext-diff --no-textconv HEAD >&3"


class EvaluationBroke(RuntimeError):
    """The sandbox could not be brought to the point where the tests begin: the image's fault, never the patch's."""


class NoPatch(ValueError):
    """The agent's files cannot be told as a patch; the text says why."""


def unpack(sandbox: Sandbox) -> None:
    """Put the repository into an empty workspace. Raises EvaluationBroke."""
    ran = sandbox.run(f"tar -xf {PACKED} -C {WORKSPACE}", seconds=SETUP_SECONDS)
    if ran.status or ran.timed_out:
        raise EvaluationBroke(
            f"the repository cannot be unpacked: allow a larger workspace_mb ({ran.output[-200:].strip()})"
        )


def take_patch(sandbox: Sandbox, row: Row) -> str:
    """The agent's changes of files that count, as ``git diff`` writes them; "" for none. Raises NoPatch.

    Git looks at the workspace from a fresh copy of the repository's own folder, in a scratch folder that is emptied for
    it, so that what the agent did to its index, settings, hooks or history has no effect.
    """
    staged = sandbox.run(_STAGE, seconds=SETUP_SECONDS, report=True)
    if staged.status == 9:
        raise EvaluationBroke(f"no room for a copy of .git: allow a larger scratch_mb ({staged.output[-200:].strip()})")
    if staged.status or staged.timed_out:
        raise NoPatch("git cannot read the changed files")
    touched = frozenset(patched_files(row.test_patch))
    names = [name for name in staged.report.split(b"\0") if name]
    left_out = [name for name in names if not counts(name.decode(errors="surrogateescape"), touched)]
    unstage = with_input(b"\0".join(left_out), _UNSTAGE) if left_out else ""
    output = sandbox.run(f"{_REPOSITORY}\n{unstage}\n{_TELL}", seconds=SETUP_SECONDS, report=True)
    if output.status or output.timed_out:
        raise NoPatch("git cannot compare the changed files")
    if len(output.report) > LARGEST_PATCH:
        raise NoPatch(f"the patch has {len(output.report):,} bytes, more than {LARGEST_PATCH:,}")
    try:
        return output.report.decode()
    except UnicodeDecodeError:
        raise NoPatch("the patch is not UTF-8, which predictions must be") from None


def counts(path: str, touched: Collection[str] = ()) -> bool:
    """True if a change of a file belongs to the patch: tests do not, nor what only steers how they run.

    Args:
        touched: files that the row's own patch of tests replaces.
    """
    place = PurePosixPath(path)
    if path in touched or place.name in _STEERING or place.suffix in (".pth", ".pyc", ".pyo"):
        return False
    is_test = place.suffix == ".py" and (place.name.startswith("test_") or place.name.endswith("_test.py"))
    return not is_test and _TEST_FOLDERS.isdisjoint(place.parts[:-1])


def patched_files(patch: str) -> list[str]:
    """The files that a patch leads to, in its order.

    >>> patched_files("diff --git a/tests/old.py b/tests/new.py\\nrename from tests/old.py\\n")
    ['tests/new.py']
    """
    return re.findall(r"^diff --git a/.* b/(.*)$", patch, re.MULTILINE)


def with_input(text: bytes, command: str) -> str:
    """A shell command with a text on its standard input, whatever the text is."""
    return f"base64 -d <<END_OF_TEXT | {command}\n{base64.b64encode(text).decode()}\nEND_OF_TEXT"
