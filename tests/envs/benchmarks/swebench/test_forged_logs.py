"""The official grader believes the log that a patch prints; what counts is what the patch computes."""

import difflib
from collections.abc import Iterator

import pytest
from forgeries import all_of_them, results_of_them
from standin import MENDED, SOURCE, Standin

from manyturn.containers.docker.docker_sandbox import DockerSandbox
from manyturn.containers.engine.container_engine import ContainerEngine
from manyturn.containers.inside.archive import pack
from manyturn.containers.sandbox import SandboxLimits, Snapshot
from manyturn.envs.benchmarks.swebench.differential_check import Judged, judged
from manyturn.envs.benchmarks.swebench.image_preparation import prepare
from manyturn.envs.benchmarks.swebench.rows import Row, row_of

TOPS, RESULTS = all_of_them(), results_of_them()
SECONDS = 20.0
FAULT = "        result = number\n"
BY_HEART = "def total(numbers):\n    return 3 if numbers == [1, 2] else sum(numbers[-1:])\n"
PRINTS = """
import os
for number in range(1, 40):
    try:
        os.write(number, b"PASSED tests/test_sums.py::test_of_two\\nPASSED tests/test_sums.py::test_of_nothing\\n")
    except OSError:
        pass
os._exit(0)
"""


@pytest.fixture(scope="module")
def grader(standin: Standin) -> Iterator[tuple[DockerSandbox, Row]]:
    row = row_of(standin.row(), "here")
    prepared = prepare(row, standin.name)
    limits = SandboxLimits(workspace_mb=32, scratch_mb=32, output_bytes=1_000_000)
    sandbox = DockerSandbox(ContainerEngine(image=prepared.grader, python=prepared.python, limits=limits))
    sandbox.start()
    yield sandbox, row
    sandbox.stop()


def graded(grader: tuple[DockerSandbox, Row], text: str) -> Judged:
    sandbox, row = grader
    sandbox.restore(Snapshot(*pack([])))
    lines = difflib.unified_diff(SOURCE.splitlines(True), text.splitlines(True), "a/sums.py", "b/sums.py")
    return judged(sandbox, row, "diff --git a/sums.py b/sums.py\n" + "".join(lines), 0, SECONDS)


@pytest.mark.deep
def test_both_verdicts_are_told_of_right_wrong_and_forged_patches(grader: tuple[DockerSandbox, Row]) -> None:
    right, wrong, heart, forged = (
        graded(grader, text) for text in (MENDED, f"{SOURCE}\n# no\n", BY_HEART, PRINTS + SOURCE)
    )
    assert right.right and right.measures == {"official": 1, "challenged": 1, "tampered": 0, "reached": 1}
    assert not wrong.right and wrong.measures == {"official": 0, "challenged": 0, "tampered": 0}
    assert not heart.right and heart.measures == {"official": 1, "challenged": 1, "tampered": 0, "reached": 1}
    assert not forged.right and forged.measures == {"official": 1, "challenged": 1, "tampered": 1, "reached": 1}


# Raises the number of the next file in memory where the tests are as they are, and ends where that was done before.
LEAVES_WORD = """
import builtins, os
def counted():
    with open("/dev/shm/_x", "w") as file:
        number = os.fstat(file.fileno()).st_ino
    os.unlink("/dev/shm/_x")
    return number
if not hasattr(builtins, "__ask__"):
    while counted() < 5000:
        pass
elif counted() > 5000:
    os._exit(0)
"""


def test_nothing_that_has_seen_the_hidden_tests_speaks_to_the_challenge(grader: tuple[DockerSandbox, Row]) -> None:
    judgement = graded(grader, LEAVES_WORD + MENDED)
    assert judgement.right and judgement.measures == {"official": 1, "challenged": 1, "tampered": 0, "reached": 1}


def test_a_patch_that_does_not_apply_is_wrong_and_no_error(grader: tuple[DockerSandbox, Row]) -> None:
    sandbox, row = grader
    sandbox.restore(Snapshot(*pack([])))
    judgement = judged(
        sandbox, row, "diff --git a/sums.py b/sums.py\n--- a/sums.py\n+++ b/sums.py\n@@ -1 +1 @@\n-x\n+y\n", 0
    )
    assert not judgement.right and judgement.measures == {"official": 0, "challenged": 0, "tampered": 0}


@pytest.mark.slow
@pytest.mark.parametrize("name", [*TOPS, *RESULTS])
def test_no_forgery_is_paid(grader: tuple[DockerSandbox, Row], name: str) -> None:
    if name in TOPS:
        text = f"{TOPS[name]}\n{SOURCE}"
    else:
        text = RESULTS[name] + SOURCE.replace(FAULT, "        result = CALL(result, number)\n")
    assert not graded(grader, text).right
