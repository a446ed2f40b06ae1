"""Who knows the visible test by heart is not paid where other inputs reach the fault, and it is said where none do."""

from collections.abc import Iterator

import pytest
from small import Small, episode, small

from manyturn.containers.docker_sandbox import DockerSandbox
from manyturn.containers.pool import lease
from manyturn.envs.software.grader import RESOLVED, UNRESOLVED, Grade, grade
from manyturn.envs.software.problem import Problem
from manyturn.envs.software.tasks import Imported
from manyturn.envs.tools.calls import call_text

RARE = "def week(day):\n    return day // 13 - (day % 13 == 0)\n"  # wrong at one day in thirteen
RIGHT = "def week(day):\n    return day // 13\n"
BY_HEART = f"{RARE.replace('week', 'faulty')}\n\ndef week(day):\n    return 2 if day == 26 else faulty(day)\n"
TEST = "from calc.core import week\n\ndef test_week():\n    assert week(26) == 2\n"


def weeks(faulty: str = RARE, right: str = RIGHT, test: str = TEST) -> Problem:
    texts = {"calc/__init__.py": "", "calc/core.py": faulty, "tests/test_week.py": test, "pytest.ini": "[pytest]\n"}
    files = {path: text.encode() for path, text in texts.items()}
    return small(
        id="weeks",
        files=files,
        tests={path: content for path, content in files.items() if path.startswith("tests/")},
        fail_to_pass=("tests/test_week.py::test_week",),
        pass_to_pass=(),
        fix={"calc/core.py": right.encode()},
    )


@pytest.fixture(scope="module")
def sandbox(engine: str) -> Iterator[DockerSandbox]:
    with lease() as sandbox:
        yield sandbox


def graded(sandbox: DockerSandbox, problem: Problem, core: str, seed: int = 0) -> Grade:
    return grade(sandbox, problem, {"calc/core.py": core.encode()}, 20.0, seed)


@pytest.mark.parametrize("seed", range(2))
def test_the_answers_of_the_visible_test_are_not_paid(sandbox: DockerSandbox, seed: int) -> None:
    found = graded(sandbox, weeks(), BY_HEART, seed)
    assert (found.cause, found.fixed, found.reached) == (UNRESOLVED, (), 1.0)
    assert "on its own inputs alone" in found.detail
    assert graded(sandbox, weeks(), RIGHT, seed).cause == RESOLVED


BORDER = "def week(day):\n    return 'late' if day {} 26 else 'early'\n"
AT_THE_BORDER = TEST.replace("== 2", "== 'late'")


class Border(Small):
    """A fault that one input alone reaches, which is the visible test's."""

    def problems(self, source: str | None, difficulty: str | None) -> Imported:
        return Imported("border", [weeks(BORDER.format(">"), BORDER.format(">="), AT_THE_BORDER)])


def test_a_grade_that_rests_on_the_visible_tests_alone_says_so(engine: str) -> None:
    env = Border(reward="resolved")
    fix = call_text("edit", path="calc/core.py", old="day > 26", new="day >= 26")
    paid, info = episode(env, [fix, call_text("submit")], "weeks")
    assert (paid, info["measures"]["reached"]) == (1.0, 0.0)
    nothing = call_text("edit", path="calc/core.py", old="day > 26", new="day > 27")
    _, info = episode(env, [nothing, call_text("submit")], "weeks")
    assert "reached" not in info["measures"] and info["measures"]["modified"] == 1.0
    env.close()


def test_the_share_of_tests_that_are_reached_is_told(engine: str) -> None:
    env = Small(reward="resolved")
    mend = call_text("edit", path="calc/core.py", old="a - b", new="a + b")
    paid, info = episode(env, [mend, call_text("submit")])
    assert (paid, info["measures"]["reached"]) == (1.0, 1.0)
    env.close()


def test_what_is_random_is_no_copy_that_reaches_the_fault(sandbox: DockerSandbox) -> None:
    right = "import random\n\ndef week(day):\n    return random.random()\n"
    faulty = "def week(day):\n    raise ValueError\n"
    problem = weeks(faulty, right, "from calc.core import week\n\ndef test_week():\n    found = week(26)\n")
    found = graded(sandbox, problem, right)
    assert (found.cause, found.reached) == (RESOLVED, 0.0)
    assert graded(sandbox, problem, right.replace("return", "random.seed(); return")).cause == RESOLVED


def test_a_deck_is_drawn_once_and_not_by_every_grading(sandbox: DockerSandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[str] = []
    run = DockerSandbox.run

    def counted(self: DockerSandbox, script: str, **named: object) -> object:
        runs.append(script)
        return run(self, script, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(DockerSandbox, "run", counted)
    problem = weeks()._replace(id="weeks, once")
    counts = list[int]()
    for core in (RIGHT, RIGHT + "# again\n", BY_HEART):
        runs.clear()
        graded(sandbox, problem, core, seed=2)
        counts.append(len(runs))
    assert counts[1:] == [2, 2] and counts[0] >= 5
