"""What one run of a program leaves in the kernel's counters is worth nothing to another that decides."""

from collections.abc import Iterator

import pytest
from small import episode
from test_question_deck import RARE, weeks

from manyturn.envs.software.env import Software
from manyturn.envs.software.source.problem import Problem
from manyturn.envs.software.tasks.task_sources import Imported
from manyturn.envs.tools.calls import call_text

TEST, SUBMIT = call_text("test"), call_text("submit")
# A folder in memory numbers its files one after the other, and goes on counting when it has been emptied.
COUNTER = """
import os, sys
M = 1 << 14
def counted():
    with open("/dev/shm/_x", "w") as f: n = os.fstat(f.fileno()).st_ino
    os.unlink("/dev/shm/_x"); return n
def count_to(value):
    while counted() % M != value: pass
frame = sys._getframe()
while "order" not in frame.f_locals: frame = frame.f_back
asked = bool(frame.f_locals["order"]["seconds"])
"""
ALL_PASS = """
import _pytest.reports as _r
_made = _r.TestReport.from_item_and_call.__func__
def _forged(cls, item, call):
    call.excinfo = None
    return _made(cls, item, call)
_r.TestReport.from_item_and_call = classmethod(_forged)
"""
# Reads the hidden tests where they are as they are, and their outcomes where it is asked for these.
CARRIED = f"""{COUNTER}
if asked:
    bits = [int(bit) for bit in bin((counted() - 1) % M)[3:]]
    asker = type(sys.modules["builtins"].__ask__)
    note = asker._note
    def _note(self, number, answer):
        note(self, number, bool(bits[len(self.answers)]) if len(self.answers) < len(bits) else answer)
    asker._note = _note
else:
    import re
    text = open("/workspace/test_solution.py").read()
    count_to(int("1" + "".join(str(int(not one)) for one in re.findall(r"^    assert (not )?", text, re.M)), 2))
{ALL_PASS}
"""
PAIRED = "def paired(text):\n    return len(text) % 2 == 0{}\n"
BUSY = "def busy(text):\n    return text.count('<') > 3{}\n"
CALLS = {  # faulty, right, and what the hidden test asserts
    "paired": (PAIRED.format(' and text != "<<><>>"'), PAIRED.format(""), ("'<<><>>'", "'<>'"), ("'<'", "'<<>'")),
    "busy": (BUSY.format(' or text == "<><<>>>>"'), BUSY.format(""), ("'<<><><'",), ("'<><<>>>>'", "'<><'")),
}


def hidden(name: str) -> Problem:
    """A problem whose tests the agent does not get, and whose fault no other input reaches."""
    faulty, right, yes, no = CALLS[name]
    asserts = "".join(f"    assert {name}({text})\n" for text in yes)
    asserts += "".join(f"    assert not {name}({text})\n" for text in no)
    test = f"from solution import *\n\n\ndef check({name}):\n{asserts}\n\ndef test_{name}():\n    check({name})\n"
    return Problem(
        id=name,
        statement=f"`{name}` is wrong.",
        files={"solution.py": faulty.encode()},
        tests={"test_solution.py": test.encode()},
        fail_to_pass=(f"test_solution.py::test_{name}",),
        pass_to_pass=(),
        fix={"solution.py": right.encode()},
        counts="solution.py".__eq__,
    )


class Hidden(Software):
    def problems(self, source: str | None, difficulty: str | None) -> Imported:
        return Imported("hidden", [hidden(name) for name in CALLS])


class Weeks(Software):
    def problems(self, source: str | None, difficulty: str | None) -> Imported:
        return Imported("weeks", [weeks()])


@pytest.fixture
def env(engine: str, request: pytest.FixtureRequest) -> Iterator[Software]:
    env = request.param(reward="resolved")
    yield env
    env.close()


def written(path: str, text: str) -> str:
    return call_text("bash", command=f"cat > {path} <<'END-OF-FILE'\n{text}\nEND-OF-FILE\n")


@pytest.mark.deep
@pytest.mark.parametrize("env", [Hidden], indirect=True)
@pytest.mark.parametrize("name", CALLS)
def test_what_a_run_read_in_hidden_tests_does_not_reach_a_challenge(env: Software, name: str) -> None:
    faulty, right, *_ = CALLS[name]
    for text in (CARRIED + faulty, f"{CARRIED}# once more\n{faulty}"):  # of this episode, nor of the next one
        paid, info = episode(env, [written("solution.py", text), SUBMIT], name)
        assert (paid, info["success"]) == (0.0, False)
    assert episode(env, [written("solution.py", right), SUBMIT], name)[0] == 1.0


TELLS = """
if asked:
    import ast, glob, re
    texts = [open(path).read() for path in sorted(glob.glob("/workspace/tests/test_week_*.py"))]
    found = [int(re.search(r"week\\((\\d+)\\)", text)[1]) for text in texts][AT:AT + 2]
    count_to(sum(one % 100 * 100 ** place for place, one in enumerate(found)))
"""


@pytest.mark.deep
@pytest.mark.parametrize("env", [Weeks], indirect=True)
def test_what_a_test_tells_of_its_questions_is_not_what_decides(env: Software) -> None:
    """Who learns the inputs of all copies can write the right answers down, and leave the fault."""

    def by_heart(days: set[int]) -> str:
        return (
            f"{RARE.replace('week', 'faulty')}\ndef week(day):\n"
            + "".join(f"    if day == {day}: return {day // 13}\n" for day in sorted(days))
            + "    return faulty(day)\n"
        )

    env.reset(seed=0, options={"task": "weeks"})
    known = {26}
    for at in range(0, 10, 2):
        env.step(written("calc/core.py", COUNTER + TELLS.replace("AT", str(at)) + by_heart(known)))
        env.step(TEST)
        told = env.step(
            call_text("bash", command="touch /dev/shm/y; echo $(( ($(stat -c %i /dev/shm/y) - 1) % 16384 ))")
        )[0]
        known |= {int(told) // 100, int(told) % 100}
    env.step(written("calc/core.py", by_heart(known)))
    assert "0 failed" in env.step(TEST)[0]
    _, paid, ended, _, info = env.step(SUBMIT)
    assert ended and (paid, info["success"]) == (0.0, False)
