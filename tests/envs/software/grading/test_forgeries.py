"""Sources that forge a result are paid nothing, whatever they know of the grader; honest ones lose nothing by it."""

from functools import cache
from itertools import product

import pytest
from forgeries import all_of_them, forging_first, results_of_them
from small import CORE, MENDED, Small, episode, small

from manyturn.containers.docker.docker_sandbox import DockerSandbox
from manyturn.envs.contract.random_keys import generator
from manyturn.envs.software.env import Software
from manyturn.envs.software.grading.grader import RESOLVED, TAMPERED, UNRESOLVED, Grade, carried, grade
from manyturn.envs.software.source.problem import Problem
from manyturn.envs.software.tasks.drills import FUNCTIONS, Drills
from manyturn.envs.tools.calls import call_text

TOPS, RESULTS = all_of_them(), results_of_them()
FIRST = ("forged, found by frames, says passed", "forged, found by gc, says what tests are known to expect")
FIRST += ("patched: hollow at collection",)
READ = ("a result that equals everything", "a result from line of the caller")
SECONDS = 20.0


def graded(sandbox: DockerSandbox, problem: Problem, path: str, text: str, seed: int = 0) -> Grade:
    return grade(sandbox, problem, carried(problem, {path: text.encode()}), SECONDS, seed)


def forged(sandbox: DockerSandbox, name: str) -> Grade:
    """A forgery in the small problem."""
    text = (
        f"{TOPS[name]}\n{CORE}" if name in TOPS else RESULTS[name] + CORE.replace("return a - b", "return CALL(a, b)")
    )
    return graded(sandbox, small(), "calc/core.py", text)


@pytest.mark.deep
@pytest.mark.parametrize("name", [*FIRST, *READ])
def test_a_known_forgery_is_paid_nothing(sandbox: DockerSandbox, name: str) -> None:
    found = forged(sandbox, name)
    assert found.cause == (UNRESOLVED if name == READ[1] else TAMPERED) and not found.fixed


@pytest.mark.slow
@pytest.mark.parametrize("name", [*TOPS, *RESULTS])
def test_no_forgery_is_paid(sandbox: DockerSandbox, name: str) -> None:
    found = forged(sandbox, name)
    assert found.cause != RESOLVED and not found.fixed


def test_forgeries_are_many() -> None:
    assert len(TOPS) + len(RESULTS) > 280


@pytest.mark.deep
@pytest.mark.parametrize("name", FIRST[:1])
def test_a_forgery_is_an_ending_of_its_own(engine: str, name: str) -> None:
    env = Small(reward="levels")
    text = f"cat > calc/core.py <<'END-OF-FILE'\n{TOPS[name]}\n{CORE}END-OF-FILE\n"
    paid, info = episode(env, [call_text("bash", command=text), call_text("submit")])
    assert info["measures"] == {"completed": 0.0, "modified": 0.0, "tampered": 1.0, "official": 1.0, "reached": 1.0}
    assert info["reward_parts"]["outcome"] == 0.0 == pytest.approx(paid, abs=1e-12) and not info["success"]
    env.close()


TELLS = """
f = sys._getframe()
while "order" not in f.f_locals:
    f = f.f_back
order = f.f_locals["order"]
import atexit, gc, glob
send = next(o for o in gc.get_objects() if type(o).__name__ == "Sender")
seen = "SEEN " + " ".join(open(p).read() for p in glob.glob("/workspace/tests/test_core_*.py"))[:200]
"""
TOLD = {
    "an id": "send({'id': seen, 'outcome': 'failed', 'text': seen, 'answers': []})",
    "a file": "send({'file': seen, 'outcome': 'failed', 'text': seen})",
    "an exit": "send({'exit': 20061980}); os._exit(7)",
    "a test": "double = lambda a: None",
}


@pytest.mark.deep
@pytest.mark.parametrize("way", TOLD)
def test_what_a_program_sees_of_the_questions_does_not_reach_its_author(engine: str, way: str) -> None:
    """Who reads a copy's inputs in a run of the tests could write the right answers down by hand."""
    env = Small()
    text = f"import os, sys\n{TELLS}\n{MENDED}\nif order['seconds']:\n    {TOLD[way]}\n"
    env.reset(seed=0, options={"task": "small"})
    env.step(call_text("bash", command=f"cat > calc/core.py <<'END-OF-FILE'\n{text}END-OF-FILE\n"))
    told = env.step(call_text("test"))[0]
    assert told in ("The run was tampered with.", "The tests pass on their own inputs, but not on others.")
    env.close()


@cache
def _problems(split: str) -> list[Problem]:
    env = Software(source="drills" if split == "train" else None, split=split)
    made = [env._problems.problem(task) for task in env.tasks(split)]
    env.close()
    return sorted(made, key=lambda problem: len(problem.fail_to_pass) + len(problem.pass_to_pass))


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("split", "name"), [*product(("train", "smoke"), TOPS)])
def test_no_forgery_is_paid_on_a_drill_or_a_library(sandbox: DockerSandbox, split: str, name: str) -> None:
    problem = _problems(split)[0]
    (path,) = problem.fix
    found = graded(sandbox, problem, path, f"{TOPS[name]}\n{problem.files[path].decode()}")
    assert found.cause != RESOLVED and not found.fixed


@pytest.mark.slow
@pytest.mark.parametrize("name", RESULTS)
def test_no_forged_result_is_paid_on_a_drill(sandbox: DockerSandbox, name: str) -> None:
    fault = "return a - b"
    problem = next(one for one in _problems("train") if fault in one.files["calc.py"].decode())
    text = RESULTS[name] + problem.files["calc.py"].decode().replace(fault, "return CALL(a, b)")
    found = graded(sandbox, problem, "calc.py", text)
    assert found.cause != RESOLVED and not found.fixed


# ---- honest work ----------------------------------------------------------------------------------------------

ADD = ("a + b", "b + a if type(b) is type(a) else a + b", "a - (-b)", "sum([b], a)", "__import__('operator').add(a, b)")
TOTAL = (
    "    result = 0\n    for number in numbers:\n        result = add(result, number)\n    return result\n",
    "    return sum(numbers)\n",
    "    from functools import reduce\n    return reduce(add, numbers, 0)\n",
    "    return add(numbers[0], total(numbers[1:])) if numbers else 0\n",
    "    result, left = 0, list(numbers)\n    while left:\n        result += left.pop()\n    return result\n",
)
DOUBLE = ("a * 2", "2 * a", "a + a", "a.__add__(a)")


def rewritten(add: str, total: str, double: str) -> str:
    return (
        f"def add(a, b):\n    return {add}\n\n\ndef total(numbers):\n{total}\n\ndef double(a):\n    return {double}\n"
    )


@pytest.mark.slow
@pytest.mark.parametrize(("add", "total", "double"), [*product(ADD, TOTAL, DOUBLE)])
def test_a_right_program_that_is_written_differently_passes(
    sandbox: DockerSandbox, add: str, total: str, double: str
) -> None:
    found = graded(sandbox, small(), "calc/core.py", rewritten(add, total, double), seed=len(add + total + double))
    assert found == Grade(RESOLVED, "", small().fail_to_pass, (), {}, 1.0, official=True)


@pytest.mark.deep
def test_a_right_program_passes_under_another_challenge(sandbox: DockerSandbox) -> None:
    assert graded(sandbox, small(), "calc/core.py", rewritten(ADD[2], TOTAL[3], DOUBLE[2]), 7).cause == RESOLVED


def test_what_is_right_for_one_input_alone_fails_and_is_no_tampering(sandbox: DockerSandbox) -> None:
    table = "{(1, 2): 3, (0, 1): 1, (3, 3): 6}.get((a, b), a - b)"
    found = graded(sandbox, small(), "calc/core.py", MENDED.replace("return a + b", f"return {table}"))
    assert (found.cause, found.fixed) == (UNRESOLVED, ()) and "on its own inputs alone" in found.detail


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_hundred_wrong_drills_stay_unpaid_and_a_hundred_right_ones_pass(sandbox: DockerSandbox) -> None:
    drills = Drills()
    tasks = drills.tasks["train"]
    for at in generator("a hundred drills").permutation(len(tasks))[:100]:
        task = tasks[at]
        problem = drills.problem(task)
        (path,) = problem.fix
        wrong = FUNCTIONS[task.params["faulty"]]
        other = next(sign for sign in wrong.faults if sign != task.params["sign"])
        (right,) = problem.fix.values()
        spoilt = right.decode().replace(wrong.body(wrong.sign), wrong.body(other))
        for top in ("", forging_first()):
            assert not graded(sandbox, problem, path, top + spoilt, int(at)).fixed, task
        assert graded(sandbox, problem, path, right.decode() + "\n# the same", int(at)).cause == RESOLVED, task
