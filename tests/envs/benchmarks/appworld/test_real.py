"""The real AppWorld, where somebody has set it up: MANYTURN_APPWORLD_PYTHON and MANYTURN_APPWORLD_ROOT say where.

Nothing of its data is asserted on or printed.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from manyturn.envs.benchmarks.appworld.env import AppWorld

pytestmark = [pytest.mark.usefixtures("confinable"), pytest.mark.slow]


@pytest.fixture(scope="module")
def env(real: dict[str, str]) -> Iterator[AppWorld]:
    world = AppWorld(**real, seconds=5, max_turns=12)
    yield world
    world.close()


def played(env: AppWorld, *actions: str) -> list[tuple[str, float, bool, bool]]:
    task = env.tasks("train")[0]
    turns = [(env.reset(seed=0, options={"task": task.id})[0], 0.0, False, False)]
    return turns + [env.step(action)[:4] for action in actions]


def test_an_interpreter_persists_and_reaches_the_apps(env):
    turns = played(env, "x = 40", "print(x + 2)", "print(apis.supervisor.show_active_task()['status'])", "1 / 0")
    assert [turn[0] for turn in turns[1:4]] == ["Execution successful.", "42", "None"]
    assert "ZeroDivisionError" in turns[4][0]


def test_equal_actions_give_equal_texts(env):
    actions = [
        "print(sorted(apis.supervisor.show_profile().items()))",
        "print({str(n) for n in range(50)}, random.random())",
        "print(DateTime.now())",
        "apis.supervisor.complete_task()",
    ]
    assert played(env, *actions) == played(env, *actions)


def test_doing_nothing_damages_nothing_and_is_not_enough(env):
    *_, (_, reward, terminated, _) = played(env, "apis.supervisor.complete_task(status='fail')")
    measures = env.measures()
    assert (reward, terminated, measures["declared_done"], measures["collateral_damage"]) == (0.0, True, 1.0, 0.0)
    assert 0 <= measures["tests_passed"] < 1


def test_the_answer_lies_out_of_reach(env, real):
    truth = Path(real["root"], "data", "tasks", env.tasks("train")[0].id, "ground_truth", "answer.json").resolve()
    assert truth.read_bytes()
    turns = played(
        env,
        f"print(__import__('io').FileIO({str(truth)!r}).read())",
        f"print(__import__('io').FileIO('data/tasks/{env.tasks('train')[0].id}/ground_truth/answer.json').read())",
        "print(__import__('_socket').socket())",
        "print(__import__('posix').fork())",
        "print(__import__('io').FileIO('/etc/passwd').read())",
        "print(__import__('io').FileIO('/tmp/written', 'w'))",
    )
    assert all("Error" in text for text, *_ in turns[1:]), turns


def test_code_that_breaks_the_shell_does_not_break_the_episode(env):
    turns = played(
        env,
        "raise KeyboardInterrupt",
        "while True:\n    try:\n        pass\n    except Exception:\n        pass",
        "print(chr(0xd800))",
        "-" * 40_000 + "1",
        "print('x' * (1 << 25))",
        "print(1)",
    )
    assert turns[-1][0] == "1" and turns[3][0] == "\\ud800" and len(turns[5][0]) < 30_000
    assert "timed out" in turns[2][0]
