"""Who knows the visible test by heart is not paid where other inputs reach the fault, and it is said where none do."""

from collections.abc import Mapping, Sequence

import pytest
from small import Small, episode, small

from manyturn.containers.docker.docker_sandbox import DockerSandbox
from manyturn.envs.contract.random_keys import generator
from manyturn.envs.software.grading.answer_comparison import UNSTEADY
from manyturn.envs.software.grading.assertion_questions import questions
from manyturn.envs.software.grading.grader import RESOLVED, UNRESOLVED, Grade, grade
from manyturn.envs.software.grading.question_deck import QuestionDeck, drawn
from manyturn.envs.software.source.problem import Problem
from manyturn.envs.software.tasks.task_sources import Imported
from manyturn.envs.software.testing.pytest_run import PytestRun
from manyturn.envs.tools.calls import call_text

RARE = "def week(day):\n    return day // 13 - (day % 13 == 0)\n"  # wrong at one day in thirteen
RIGHT = "def week(day):\n    return day // 13\n"
BY_HEART = f"{RARE.replace('week', 'faulty')}\n\ndef week(day):\n    return 2 if day == 26 else faulty(day)\n"
TEST = "from calc.core import week\n\ndef test_week():\n    assert week(26) == 2\n"
BY_NAME = TEST.replace("assert week(26)", "day = 26\n    assert week(day)")


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


def graded(sandbox: DockerSandbox, problem: Problem, core: str, seed: int = 0) -> Grade:
    return grade(sandbox, problem, {"calc/core.py": core.encode()}, 20.0, seed)


@pytest.mark.deep
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2, 3))])
def test_the_answers_of_the_visible_test_are_not_paid(sandbox: DockerSandbox, seed: int) -> None:
    often, by_heart, right = (text.replace("13", "7").replace("26", "14") for text in (RARE, BY_HEART, RIGHT))
    problem = weeks(often, right, TEST.replace("26", "14"))
    found = graded(sandbox, problem, by_heart, seed)
    assert (found.cause, found.fixed, found.reached) == (UNRESOLVED, (), 1.0)
    assert "on its own inputs alone" in found.detail
    assert graded(sandbox, problem, right, seed).cause == RESOLVED


@pytest.mark.deep
def test_a_fault_that_few_inputs_show_is_not_called_reached_and_its_lie_is_not_paid(sandbox: DockerSandbox) -> None:
    """One copy that shows it leaves room for a constant in its place."""
    found = graded(sandbox, weeks(), BY_HEART)
    assert (found.cause, found.fixed, found.reached) == (UNRESOLVED, (), 0.0)
    assert graded(sandbox, weeks(), RIGHT).cause == RESOLVED


CHECKED = """from calc.core import week

def check(one, other):
    if one != other:
        raise AssertionError

def test_week():
    found = week(26)
    check(found, 2)
"""


@pytest.mark.deep
def test_a_copy_in_which_the_reference_stops_still_asks_what_comes_before(sandbox: DockerSandbox) -> None:
    """Of a test with an assertion in a helper no copy comes to its end, since no copy expects the right thing."""
    problem = weeks(RARE.replace("13", "12"), test=CHECKED)
    found = graded(sandbox, problem, BY_HEART.replace("13", "12"))
    assert (found.cause, found.fixed, found.reached) == (UNRESOLVED, (), 1.0)
    assert graded(sandbox, problem, RIGHT).cause == RESOLVED


TWO = "def week(day):\n    return day {} 7\n\ndef hours(day):\n    return day {} 24\n"
TWO_TESTS = """from calc.core import hours, week

def test_week():
    assert week(26) == 3

def test_hours():
    assert hours(2) == 48
"""


@pytest.mark.deep
def test_who_fixes_one_of_two_faults_and_knows_the_other_by_heart_is_not_paid(sandbox: DockerSandbox) -> None:
    signs = ("%", "+"), ("//", "*")
    faulty, right = (TWO.format(*some) for some in signs)
    ids = ("tests/test_week.py::test_week", "tests/test_week.py::test_hours")
    alone = tuple({"calc/core.py": TWO.format(*some).encode()} for some in (("%", "*"), ("//", "+")))
    problem = weeks(faulty, right, TWO_TESTS)._replace(fail_to_pass=ids, alone=alone)
    half = TWO.format("//", "* 24 if day == 2 else day +")
    assert graded(sandbox, problem, right)[::5] == (RESOLVED, 1.0)
    assert graded(sandbox, problem, half).cause == UNRESOLVED


BORDER = "def week(day):\n    return 'late' if day {} 26 else 'early'\n"
AT_THE_BORDER = TEST.replace("== 2", "== 'late'")


class Border(Small):
    """A fault that one input alone reaches, which is the visible test's."""

    def problems(self, source: str | None, difficulty: str | None) -> Imported:
        return Imported("border", [weeks(BORDER.format(">"), BORDER.format(">="), AT_THE_BORDER)])


@pytest.mark.deep
def test_a_grade_that_rests_on_the_visible_tests_alone_says_so(engine: str) -> None:
    env = Border(reward="resolved")
    fix = call_text("edit", path="calc/core.py", old="day > 26", new="day >= 26")
    paid, info = episode(env, [fix, call_text("submit")], "weeks")
    assert (paid, info["measures"]["reached"]) == (1.0, 0.0)
    nothing = call_text("edit", path="calc/core.py", old="day > 26", new="day > 27")
    _, info = episode(env, [nothing, call_text("submit")], "weeks")
    assert "reached" not in info["measures"] and info["measures"]["modified"] == 1.0
    env.close()


class Strict(Small):
    """What the reference also takes, the statement does not promise."""

    def problems(self, source: str | None, difficulty: str | None) -> Imported:
        return Imported("strict", [weeks(RIGHT.replace("13", "14"))])


@pytest.mark.deep
def test_the_verdict_that_others_report_stands_beside_ours(engine: str) -> None:
    env = Strict(reward="resolved")
    strict = "def week(day):\n    assert day % 13 == 0\n    return day // 13\n"
    for text, paid, official in ((strict, 0.0, 1.0), (RIGHT, 1.0, 1.0), (RIGHT.replace("13", "20"), 0.0, 0.0)):
        written = call_text("bash", command=f"cat > calc/core.py <<'END'\n{text}END")
        found, info = episode(env, [written, call_text("submit")], "weeks")
        assert (found, info["measures"]["official"], info["measures"]["tampered"]) == (paid, official, 0.0)
    env.close()


@pytest.mark.deep
def test_the_share_of_tests_that_are_reached_is_told(engine: str) -> None:
    env = Small(reward="resolved")
    mend = call_text("edit", path="calc/core.py", old="a - b", new="a + b")
    paid, info = episode(env, [mend, call_text("submit")])
    assert (paid, info["measures"]["reached"]) == (1.0, 1.0)
    env.close()


@pytest.mark.deep
def test_what_is_random_is_no_copy_that_reaches_the_fault(sandbox: DockerSandbox) -> None:
    right = "import random\n\ndef week(day):\n    return random.random()\n"
    faulty = "def week(day):\n    raise ValueError\n"
    problem = weeks(faulty, right, "from calc.core import week\n\ndef test_week():\n    found = week(26)\n")
    found = graded(sandbox, problem, right)
    assert (found.cause, found.reached) == (RESOLVED, 0.0)
    assert graded(sandbox, problem, right.replace("return", "random.seed(); return")).cause == UNRESOLVED


@pytest.mark.deep
def test_what_the_clock_says_is_believed_next_to_something_steady_and_not_alone(sandbox: DockerSandbox) -> None:
    test = "import time\nfrom calc.core import week\n\ndef test_week():\n    now = time.perf_counter()\n"
    test += "    assert week(now) == week(now + 0)\n\ndef test_steady():\n    assert week(8) == week(8 + 0)\n"
    faulty, right = "def week(day):\n    raise ValueError\n", "def week(day):\n    return day / 7\n"
    alone = weeks(faulty, right, test)
    both = alone._replace(fail_to_pass=(*alone.fail_to_pass, "tests/test_week.py::test_steady"))
    assert graded(sandbox, alone, right).cause == UNRESOLVED
    assert graded(sandbox, both, right).cause == RESOLVED


@pytest.mark.deep
def test_inputs_that_are_drawn_let_no_wrong_program_through(sandbox: DockerSandbox) -> None:
    right = "def week(day):\n    return day[1:] + day[:1]\n"
    test = "import random\nfrom calc.core import week\n\ndef test_week():\n    for _ in range(9):\n"
    test += "        day = [random.random() for _ in range(3)]\n        assert week(week(week(day))) == day\n"
    problem = weeks("def week(day):\n    return None\n", right, test)
    assert graded(sandbox, problem, right).cause == RESOLVED
    equal = "class Day(list):\n    __eq__ = lambda self, other: True\n    __hash__ = None\n\n"
    equal += "def week(day):\n    return Day([1.0])\n"
    assert graded(sandbox, problem, equal).cause == UNRESOLVED


@pytest.mark.deep
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


class Runs:
    """A program that answers what it is told to, in one run after the other."""

    def __init__(self, *runs: PytestRun):
        self.left = list(runs)

    def __call__(self, files: Mapping[str, bytes], chosen: Sequence[str], functions: Sequence[str]) -> PytestRun:
        return self.left.pop(0)


def run(status: int = 0, timed_out: bool = False, **answers: list[object]) -> PytestRun:
    """A run of tests that pass: ``a_0=[2]`` is what the first copy of the test ``a`` answers to its question."""
    ids = {f"test_{name}.py::test_week": [[1, one] for one in told] for name, told in answers.items()}
    return PytestRun(dict.fromkeys(ids, "passed"), {}, ids, status, timed_out)


def deck(reference: Runs, *faulty: Runs, text: str = TEST) -> QuestionDeck:
    test = "test_a.py::test_week"
    asked = {"test_a.py": questions(text.encode())}
    return drawn(asked, [test], [test], lambda path, copy: generator("deck", path, copy), reference, faulty)


@pytest.mark.parametrize("again", [run(-1), run(-1, a=[2]), run(0, True, a=[2], a_0=[5]), run(-1, True)])
def test_a_run_that_breaks_off_excuses_nobody(again: PytestRun) -> None:
    assert deck(Runs(run(a=[2], a_0=[5], a_1=[7]), again), Runs(run(a_0=[4], a_1=[8]))).timed_out


@pytest.mark.parametrize(
    ("test", "first", "faulty", "reached"),
    [
        (BY_NAME, 5, [4], True),  # an answer that the test does not have
        (BY_NAME, 2, [1], False),  # the test's own answer can be known by heart
        (TEST, 2, [1], False),  # and given to all other inputs, unless one of those has another answer
        (TEST, 5, [5], False),  # the fault is not come to
        (TEST, 5, [], True),  # the program stops before the question
        (TEST, 2, [], False),
    ],
)
def test_a_copy_reaches_the_fault_where_the_test_does_not_say_what_is_right(
    test: str, first: int, faulty: list[object], reached: bool
) -> None:
    told, spoilt = run(a=[2], a_0=[first]), run(a_0=faulty)
    if reached:  # one more copy, without which one and the same answer would do for all other inputs
        told, spoilt = run(a=[2], a_0=[first], a_1=[9]), run(a_0=faulty, a_1=faulty)
    more = [] if reached else [run()]  # another round
    found = deck(Runs(told, *more, told), Runs(spoilt), text=test)
    assert bool(found.reached) == reached and not found.timed_out and found.answers["test_a_0.py::test_week"]


def test_one_answer_to_all_other_inputs_reaches_nothing() -> None:
    told = run(a=[2], a_0=[5], a_1=[5])
    assert not deck(Runs(told, run(), told), Runs(run(a_0=[4], a_1=[3]))).reached


def test_one_answer_wherever_the_fault_shows_reaches_nothing_although_other_copies_have_others() -> None:
    """A constant inside the faulty function leaves the rest as it was."""
    told = run(a=[2], a_0=[2], a_1=[7])
    assert not deck(Runs(told, run(), told), Runs(run(a_0=[1], a_1=[7]))).reached
    assert deck(Runs(told, told), Runs(run(a_0=[1], a_1=[8]))).reached == {"test_a.py::test_week"}


def test_what_is_unsteady_reaches_nothing_and_proves_nothing() -> None:
    found = deck(Runs(run(a=[2], a_0=[5], a_1=[7]), run(a=[2], a_0=[6])), Runs(run(a_0=[4], a_1=[3])))
    assert (found.reached, found.lost) == (frozenset(), {"test_a_1.py::test_week"})
    assert found.answers["test_a_0.py::test_week"][0][1] is UNSTEADY
    assert not found.firm.intersection({"test_a_0.py::test_week", "test_a_1.py::test_week"}) and found.firm


def stopped(run: PytestRun, test: str) -> PytestRun:
    return run._replace(outcomes={**run.outcomes, f"test_{test}.py::test_week": "failed"})


def test_of_a_copy_that_takes_too_long_nothing_is_asked() -> None:
    told = stopped(run(a=[2], a_0=[5], a_1=[6], a_2=[7]), "a_0")
    late = told._replace(answers={**told.answers, "test_a_0.py::test_week": [[1, 5], [0, ["late"]]]})
    for first, copies in ((told, {"a_0", "a_1", "a_2"}), (late, {"a_1", "a_2"})):
        found = deck(Runs(first, first), Runs(run(a_0=[4], a_1=[4], a_2=[4])))
        assert {test.partition(".")[0].removeprefix("test_") for test in found.answers} == {"a", *copies}
        assert found.cut == {f"test_{one}.py::test_week" for one in copies - {"a_1", "a_2"}}


def test_each_of_several_faults_has_to_be_reached() -> None:
    told = run(a=[2], a_0=[5], a_1=[7])
    both = deck(Runs(told, told), Runs(run(a_0=[4], a_1=[3])), Runs(run(a_0=[8], a_1=[8])))
    one = deck(Runs(told, run(), told), Runs(run(a_0=[4], a_1=[3])), Runs(run(a_0=[5], a_1=[7])))
    assert both.reached == {"test_a.py::test_week"} and one.reached == frozenset()
