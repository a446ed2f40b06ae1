"""An agent's work becomes a patch that the harness can apply, whatever else it did to its repository."""

import pytest
from standin import GOLD

from manyturn.containers.docker.docker_sandbox import DockerSandbox
from manyturn.containers.engine.container_engine import ContainerEngine
from manyturn.containers.inside.archive import pack
from manyturn.containers.sandbox import SandboxLimits, Snapshot
from manyturn.envs.benchmarks.swebench.image_preparation import prepare
from manyturn.envs.benchmarks.swebench.log_grader import Resolved
from manyturn.envs.benchmarks.swebench.patch_evaluation import evaluate
from manyturn.envs.benchmarks.swebench.patch_extraction import NoPatch, take_patch, unpack
from manyturn.envs.benchmarks.swebench.rows import row_of

MEND = "sed -i 's/result = number/result += number/' sums.py"
EMPTY = Snapshot(*pack([]))


@pytest.fixture(scope="module")
def box(standin):
    """A sandbox of the prepared image, and its row; used again and again, as starting one takes the most time."""
    row = row_of(standin.row(), "here")
    image, _, python = prepare(row, standin.name)
    limits = SandboxLimits(workspace_mb=32, scratch_mb=32, output_bytes=1_000_000)
    sandbox = DockerSandbox(ContainerEngine(image=image, python=python, limits=limits))
    sandbox.start()
    yield sandbox, row
    sandbox.stop()


@pytest.fixture
def patch_of(box):
    sandbox, row = box
    sandbox.restore(EMPTY)
    unpack(sandbox)

    def patch(*scripts):
        for script in scripts:
            sandbox.run(script)
        return take_patch(sandbox, row)

    return patch


def test_no_change_is_no_patch(patch_of):
    assert patch_of("true") == ""


@pytest.mark.parametrize(
    "tampering",
    [
        "rm -rf .git",
        "git -c user.name=x -c user.email=x commit -qam done && git tag -f v9",
        "git update-index --assume-unchanged sums.py; echo sums.py >> .git/info/exclude",
        "git config diff.external /bin/false; git config core.fsmonitor /bin/false; git config core.worktree /tmp",
        "rm -rf .git && ln -s /nowhere .git",
        "mkdir -p /tmp/.pristine && touch /tmp/.pristine/x && chmod 0 /tmp/.pristine",
        "head -c 60000000 /dev/zero > /tmp/full; mkdir -p /tmp/d/e && touch /tmp/d/e/x && chmod 0 /tmp/d/e /tmp/d",
        "printf '[diff]\\n\\texternal = /bin/false\\n' > /tmp/.gitconfig",
    ],
)
def test_what_an_agent_does_to_git_does_not_change_its_patch(patch_of, tampering):
    assert patch_of(MEND, tampering).splitlines()[2:] == GOLD.splitlines()[1:]


def test_changes_of_tests_are_left_out(patch_of):
    patch = patch_of(
        "echo 'def test_of_two(): pass' > tests/test_sums.py; printf 'import os; os._exit(0)' > conftest.py",
        "mkdir 'a b' && echo x > 'a b/test_ü.py' && echo x > $'new\nline.pth' && echo y > notes.txt",
    )
    assert [line for line in patch.splitlines() if line.startswith("diff")] == ["diff --git a/notes.txt b/notes.txt"]


def test_new_binary_removed_and_linked_files_arrive(patch_of, box):
    patch = patch_of(
        "printf 'from data import add\\ndef total(n):\\n    return add(n)\\n' > sums.py; rm NOTES; ln -s sums.py again",
        'printf \'def add(n):\\n    assert len(open("b.bin", "rb").read()) == 3\\n    return sum(n)\\n\' > data.py',
        "printf '\\0\\377\\n' > b.bin; chmod +x data.py",
    )
    assert "deleted file" in patch and "GIT binary patch" in patch and "120000" in patch and "100755" in patch
    sandbox, row = box
    sandbox.restore(EMPTY)
    assert evaluate(sandbox, row, patch).resolved is Resolved.FULL
    there = sandbox.run("ls -A; cat NOTES; readlink again; od -An -tx1 b.bin").output
    assert "NOTES: No such file" in there and "sums.py" in there and "00 ff 0a" in there


@pytest.mark.parametrize(
    ("script", "why"),
    [
        (f"{MEND}; printf '# \\351\\n' >> sums.py", "not UTF-8"),
        (f"{MEND}; head -c 600000 /dev/zero | tr '\\0' a > big.txt", "more than 500,000"),
        ("echo x > locked.py; chmod 0 locked.py", "git cannot read"),
    ],
)
def test_what_no_patch_can_tell_is_refused(patch_of, script, why):
    with pytest.raises(NoPatch, match=why):
        patch_of(script)


@pytest.mark.deep
def test_a_patch_that_hangs_is_not_mended(box):
    sandbox, row = box
    sandbox.restore(EMPTY)
    patch = GOLD + "diff --git a/NOTES b/NOTES\n--- a/NOTES\n+++ b/NOTES\n@@ -1 +1 @@\n-a\n+b\n"
    assert evaluate(sandbox, row, patch.replace("result += number", "exec('while 1: pass')"), 3.0).valid is False


def test_a_patch_that_does_not_apply_is_not_mended(box):
    sandbox, row = box
    sandbox.restore(EMPTY)
    assert evaluate(sandbox, row, GOLD.replace("result = number", "another line")).valid is False
