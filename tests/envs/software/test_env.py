"""The software environment: paid for what was done and for nothing twice, the same again, and nothing left behind."""

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from small import Small, episode

from manyturn.containers.pool import the_pool
from manyturn.envs.contract.registration.env_registry import NeedsSetup
from manyturn.envs.software import reward_levels
from manyturn.envs.software.env import Software
from manyturn.envs.tools.calls import call_text, calls_text

MEND = call_text("edit", path="calc/core.py", old="a - b", new="a + b")
SPOIL = call_text("edit", path="calc/core.py", old="a - b", new="a * b")
TEST, SUBMIT = call_text("test"), call_text("submit")


def bash(command: str) -> str:
    return call_text("bash", command=command)


@pytest.fixture(scope="module")
def env(engine: str) -> Iterator[Small]:
    env = Small()
    yield env
    env.close()


@pytest.fixture
def lines(engine: str) -> Iterator[Small]:
    env = Small(actions="lines", max_turns=8)
    yield env
    env.close()


@pytest.mark.deep
@pytest.mark.parametrize(
    ("actions", "outcome"),
    [
        ([SUBMIT], reward_levels.EMPTY),
        ([TEST, SUBMIT], reward_levels.EMPTY),
        ([bash("rm -r tests; echo x > conftest.py"), SUBMIT], reward_levels.EMPTY),
        ([SPOIL, SUBMIT], reward_levels.FAILING),
        ([MEND, SUBMIT], reward_levels.RESOLVED),
        ([MEND, bash("sed -i 's/a \\* 2/a/' calc/core.py"), SUBMIT], reward_levels.FAILING),
        ([bash("rm calc/core.py"), SUBMIT], reward_levels.FAILING),
        ([MEND] + [bash("true")] * 50, reward_levels.NOT_SUBMITTED),
    ],
)
def test_an_episode_has_one_of_four_outcomes(env: Small, actions: list[str], outcome: float) -> None:
    _, info = episode(env, actions)
    assert info["reward_parts"].get("outcome", 0.0) == outcome
    assert info["success"] == (outcome == reward_levels.RESOLVED)


def test_steps_are_paid_once_and_less_than_any_outcome_above_the_gate(env: Small) -> None:
    again = [TEST, "nonsense", bash("false"), bash("true"), MEND, TEST]
    undo = call_text("edit", path="calc/core.py", old="a + b", new="a - b")
    paid, _ = episode(env, [*again, undo, *again, SUBMIT])
    steps = sum(reward_levels.STEPS.values())
    assert paid == pytest.approx(reward_levels.RESOLVED + steps)
    assert steps < reward_levels.RESOLVED - reward_levels.FAILING
    assert reward_levels.EMPTY < reward_levels.GATE < reward_levels.FAILING
    assert env.part_names == tuple(reward_levels.STEPS)


def test_each_step_is_paid_when_it_is_made(env: Small) -> None:
    env.reset(seed=0, options={"task": "small"})
    seen = [env.step(action)[4]["reward_parts"] for action in ["look around", bash("ls"), TEST, MEND, TEST]]
    assert [list(parts) for parts in seen] == [[], ["parsed", "ran"], ["reproduced"], ["edited"], ["tests"]]


def test_one_fixed_test_of_two_is_half_of_the_way(env: Small) -> None:
    env.reset(seed=0, options={"task": "small"})
    half = {"path": "calc/core.py", "old": "add(result, number)", "new": "add(result, result)"}
    _, _, _, _, info = env.step(
        calls_text([("edit", {"path": "calc/core.py", "old": "a - b", "new": "a + b"}), ("edit", half), ("test", {})])
    )
    assert info["progress"] == 0.5
    assert info["reward_parts"]["tests"] == pytest.approx(reward_levels.STEPS["tests"] / 2)


def test_an_outcome_of_0_or_1_has_no_other_rewards(engine: str) -> None:
    env = Small(reward="resolved")
    assert episode(env, [TEST, SPOIL, SUBMIT])[0] == 0.0
    assert episode(env, [TEST, MEND, SUBMIT])[0] == 1.0


@pytest.mark.deep
@pytest.mark.parametrize("task", ["small", "twice"])
@pytest.mark.parametrize("actions", ["calls", "lines"])
def test_the_expert_mends_by_the_tools_of_the_agent(engine: str, actions: str, task: str) -> None:
    env = Small(actions=actions)
    env.reset(seed=1, options={"task": task})
    ended, info = False, dict[str, Any]()
    while not ended:
        _, _, ended, _, info = env.step(env.expert())
    assert info["success"] and info["turn"] == 5


def test_the_expert_finds_the_way_from_anywhere(env: Small) -> None:
    env.reset(seed=0, options={"task": "small"})
    env.step(bash("printf 'def add(a, b):\\n    return a\\n\\n\\n' > calc/core.py; mkdir deep; cd deep"))
    ended, info = False, dict[str, Any]()
    while not ended:
        _, _, ended, _, info = env.step(env.expert())
    assert info["success"]


def test_short_lines_are_enough(lines: Small) -> None:
    assert "edit PATH" in lines.instructions and "<tools>" not in lines.instructions
    actions = [
        "test",
        "view calc/core.py 1 6",
        "edit calc/core.py 'a - b' 'a + b'",
        "bash cd calc && pwd",
        "test",
        "submit",
    ]
    paid, info = episode(lines, actions)
    assert info["success"] and paid == pytest.approx(reward_levels.RESOLVED + sum(reward_levels.STEPS.values()))


def test_nothing_can_follow_the_hand_in(env: Small) -> None:
    env.reset(seed=0, options={"task": "small"})
    late = [("submit", {}), ("edit", {"path": "calc/core.py", "old": "a - b", "new": "a + b"})]
    text, _, ended, _, info = env.step(calls_text(late))
    assert "submit" in text and not ended and not info["understood"]
    assert "a - b" in env.step(bash("cat calc/core.py"))[0]
    assert env.step(calls_text(reversed(late)))[4]["success"]


def test_the_tests_are_run_without_losing_what_lies_about(env: Small) -> None:
    env.reset(seed=0, options={"task": "small"})
    env.step(bash("echo mine > /tmp/note; mkdir -p out; ln -s ../calc out/link; chmod +x calc/core.py; cd out"))
    before = env.anchor()[:3]
    assert "2 failed" in env.step(TEST)[0]
    assert env.anchor()[:3] == before
    assert env.step(bash("cat /tmp/note; ls -l link | grep -o '[.]./calc'; pwd; test -x ../calc/core.py && echo x"))[
        0
    ] == ("mine\n../calc\n/workspace/out\nx")


def test_a_snapshot_holds_files_folder_links_and_scratch(env: Small, engine: str) -> None:
    env.reset(seed=3, options={"task": "small"})
    for action in (MEND, bash("echo mine > /tmp/note; rm pytest.ini; ln -s calc/core.py here; cd calc")):
        env.step(action)
    data = env.snapshot()
    other = Small()
    other.restore(data)
    look = bash("pwd; cat /tmp/note; ls -a ..; head -5 ../here")
    assert env.step(look) == other.step(look)
    assert env.step(TEST) == other.step(TEST)
    assert len(data) < 4000
    other.close()


def test_the_same_files_are_the_same_situation_by_whatever_way(env: Small) -> None:
    def anchor(*actions: str) -> tuple[object, ...]:
        env.reset(seed=0, options={"task": "small"})
        for action in actions:
            env.step(action)
        return env.anchor()

    quiet = bash("sed -i 's/a - b/a + b/' calc/core.py")
    assert anchor(quiet) == anchor(bash("touch x; rm x"), quiet)
    assert anchor(quiet) != anchor(bash("true"))
    assert anchor(bash("cd calc"), bash("true")) != anchor(bash("true"))


@pytest.mark.deep
def test_hundreds_of_episodes_share_a_few_sandboxes(engine: str) -> None:
    text = """
from manyturn.containers.pool import the_pool
from small import Small
envs = [Small(actions="lines") for _ in range(4)]
for number, env in enumerate(envs):
    env.reset(seed=0, options={"task": "small"})
    env.step(f"bash echo {number} > /tmp/note; echo {number} > note; cd calc")
for number, env in enumerate(envs):
    assert env.step("bash cat /tmp/note ../note; pwd")[0] == f"{number}\\n{number}\\n/workspace/calc", number
    assert len(the_pool()._alive) <= 2
for env in envs:
    env.step("edit core.py 'a - b' 'a + b'")
assert all(env.step("submit")[4]["success"] for env in envs)
assert not the_pool()._leased
"""
    folder = os.path.dirname(__file__)
    environ = {**os.environ, "MANYTURN_SANDBOXES": "2", "PYTHONPATH": folder}
    ran = subprocess.run([sys.executable, "-c", text], env=environ, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr


def test_an_episode_gives_its_sandbox_back(engine: str) -> None:
    before = len(the_pool()._leased)
    env = Small(max_turns=2)
    for actions in ([SUBMIT], [bash("true"), bash("true")], [bash("true")]):  # ended, truncated, left
        episode(env, actions)
    assert len(the_pool()._leased) == before + 1
    env.close()
    env.close()
    assert len(the_pool()._leased) == before
    abandoned = Small()
    abandoned.reset(seed=0)
    del abandoned
    assert len(the_pool()._leased) == before


def test_what_the_agent_reads_is_bounded_and_harmless(env: Small) -> None:
    env.reset(seed=0, options={"task": "small"})
    text = env.step(bash("printf '\\033[31mred\\r\\n\\377'; seq 100000"))[0]
    assert text.startswith("\\x1b[31mred\\r\n") and len(text) < 8000 and "left out" in text


def test_files_that_fill_the_workspace_are_no_error_of_the_environment(engine: str) -> None:
    env = Small(engine={"limits": {"files": 300, "workspace_mb": 2}})
    env.reset(seed=0, options={"task": "small"})
    env.step(bash("i=0; while [ $i -lt 400 ]; do : > calc/f$i; i=$((i+1)); done; head -c 5000000 /dev/zero > big"))
    _, _, ended, _, info = env.step(calls_text([("test", {}), ("submit", {})]))
    assert ended and not info["success"]


def test_what_is_missing_is_named_in_one_line(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NeedsSetup, match="no-such-image") as found:
        Small(engine={"image": "no-such-image:1"})
    assert "\n" not in str(found.value)
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/s.sock")
    with pytest.raises(NeedsSetup, match="DOCKER_HOST") as found:
        Small()
    assert "\n" not in str(found.value)
    with pytest.raises(ValueError, match="levels"):
        Small(reward="level")
    with pytest.raises(NeedsSetup, match="humanevalfix"):
        Software(source="humanevalfux:x")
