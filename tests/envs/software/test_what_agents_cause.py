"""What an agent brings about is an answer or a failure, never an error, which would be tried again or dropped."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from small import CORE, MENDED, Small, episode

from manyturn.containers.engine.container_engine import client
from manyturn.envs.hosting.handle import deadline
from manyturn.envs.hosting.local.seats import open_seats
from manyturn.envs.software import reward_levels
from manyturn.envs.tools.calls import call_text, calls_text

MEND = call_text("edit", path="calc/core.py", old="a - b", new="a + b")
HERE = Path(__file__).with_name("small.py")
TEST, SUBMIT = call_text("test"), call_text("submit")
MEMORY = (
    "open my $o, q(>), q(/proc/self/oom_score_adj) and do { print $o 0; close $o };"
    "my $n = qq(x\\0); while (1) { my $f = syscall(-e q(/lib64) ? 319 : 279, $n, 0); open my $h, q(>&=), $f;"
    " push @h, $h; for (1..8) { syswrite $h, qq(x) x 1048576 } }"
)


def bash(command: str) -> str:
    return call_text("bash", command=command)


def program(code: str) -> str:
    """Replaces the program by another, which tests import."""
    return bash(f"cat > calc/core.py <<'END'\n{code}\nEND")


@pytest.fixture
def patient() -> Iterator[None]:
    """As in a process whose answers are waited for."""
    yield
    deadline.allow(float("inf"))


@pytest.mark.deep
def test_a_sandbox_that_its_agent_ends_is_a_failure(engine: str) -> None:
    env = Small(engine={"limits": {"memory_mb": 128, "workspace_mb": 8, "scratch_mb": 8}})
    env.reset(seed=0, options={"task": "small"})
    assert env.step(bash(f"perl -e '{MEMORY}'"))[0].endswith("[exit status 137]")
    name = env._work.workspace._sandbox.name
    score = Path(f"/proc/{client().inspect_container(name)['State']['Pid']}/oom_score_adj")
    if not score.exists():
        pytest.skip("the engine's processes cannot be looked at from here")
    score.write_text("1000")  # as it is where the kernel has no Landlock
    text, reward, ended, truncated, info = env.step(bash(f"perl -e '{MEMORY}'"))
    assert (reward, ended, truncated, info["success"]) == (0.0, True, False, False)
    assert "ran out of memory" in text and info["measures"]["completed"] == 0.0
    assert episode(env, [MEND, SUBMIT])[1]["success"]  # the environment goes on
    env.close()


@pytest.mark.deep
@pytest.mark.usefixtures("patient")
def test_the_commands_of_one_action_have_a_time_together(engine: str) -> None:
    env = Small()
    env.reset(seed=0, options={"task": "small"})
    deadline.allow(4.0)
    text, *_ = env.step(calls_text([("bash", {"command": f"echo {n}; sleep 2.2"}) for n in range(4)]))
    assert "0" in text and "commands of one turn share 3 s" in text and "in your next turn" in text
    assert env.step(bash("echo again"))[0] == "again"
    env.close()


@pytest.mark.deep
@pytest.mark.usefixtures("patient")
def test_a_program_that_sleeps_fails_its_tests_in_time(engine: str) -> None:
    env = Small()
    env.reset(seed=0, options={"task": "small"})
    deadline.allow(6.0)
    env.step(program("import time\n" + CORE.replace("a - b", "time.sleep(60) or a + b")))
    assert "took too long" in env.step(TEST)[0]
    *_, ended, _, info = env.step(SUBMIT)
    assert ended and info["success"] is False and info["reward_parts"]["outcome"] == reward_levels.FAILING
    env.close()


@pytest.mark.slow
def test_an_action_of_many_long_commands_does_not_end_its_worker(engine: str) -> None:
    async def play() -> list[str]:
        async with open_seats(
            f"{Path(__file__).with_name('small.py')}:Small", workers=1, timeout=20.0, limit=2
        ) as seats:
            task = seats.tasks("test")[0]
            async with seats.take() as one, seats.take() as other:
                await one.reset(task, 1)
                await other.reset(task, 1)
                long = calls_text([("bash", {"command": "sleep 9"})] * 3)
                told = await asyncio.gather(one.step(long), other.step(bash("echo here")))
                return [answer.observation for answer in told]

    told = asyncio.run(play())
    assert "have 15 s together" in told[0] and told[1] == "here"


# Lines of a report that a process which reads them could trip over.
REPORTS = {
    "no text": "'\\x00\\x7f'",
    "deep": "'[' * 200000",
    "number without an end": "'{\"exit\": ' + '9' * 5000 + '}'",
    "deep answer": "ENTRY % ('[' * 950 + ']' * 950)",
    "answer beyond a float": "ENTRY % (10 ** 400)",
}

SENDS = f"""{MENDED}
import gc, os
ENTRY = '{{"id": "tests/test_core.py::test_add", "outcome": "passed", "text": "", "answers": [[1, %s]]}}'
for sender in [o for o in gc.get_objects() if hasattr(o, '_nonce')]:
    os.write(sender._descriptor, (sender._nonce + ' ' + LINE + '\\n').encode())
"""


@pytest.mark.parametrize(
    "report", [pytest.param(name, marks=() if name == "deep answer" else pytest.mark.slow) for name in REPORTS]
)
def test_no_line_of_a_report_is_an_error(engine: str, report: str) -> None:
    """A program that finds what opens the lines of a report, and sends one of its own."""
    env = Small()
    _, info = episode(env, [program(SENDS.replace("LINE", REPORTS[report])), SUBMIT])
    assert info["success"] is False and info["measures"]["tampered"] == 1.0
    env.close()


@pytest.mark.slow
@pytest.mark.parametrize("answer", ["10 ** 400", "float('nan')", "[[[1]]] * 10 ** 5", "'\\ud800' * 3"])
def test_no_answer_is_an_error(engine: str, answer: str) -> None:
    env = Small()
    code = MENDED.replace("return result", f"return result if len(numbers) == 3 and numbers[0] == 1 else {answer}")
    _, info = episode(env, [program(code), SUBMIT])
    assert info["success"] is False
    env.close()


@pytest.mark.slow
def test_files_that_leave_no_room_for_the_challenge_are_a_failure(engine: str) -> None:
    """The tests fit beside them, and the copies of the tests do not."""
    env = Small(engine={"limits": {"workspace_mb": 2, "scratch_mb": 8, "memory_mb": 128}})
    for size in (2_024, 2_036):
        mend = "sed -i 's/a - b/a + b/' calc/core.py"
        _, info = episode(env, [bash(f"{mend}; head -c {size}K /dev/zero | tr '\\0' '#' >> calc/core.py"), SUBMIT])
        assert info["success"] is False
    env.close()
