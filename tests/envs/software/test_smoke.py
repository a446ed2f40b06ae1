"""Tasks that come along can be solved, are not solved from the start, and are the same for everyone."""

from collections.abc import Iterator

import pytest

from manyturn.envs.contract.registration.env_registry import NeedsSetup
from manyturn.envs.software.env import Software
from manyturn.envs.software.tasks.lock_file import ours
from manyturn.envs.software.tasks.task_entry import problem
from manyturn.envs.tools.calls import call_text

SMOKE = ours().split("smoke")
LEAST = min(SMOKE, key=lambda entry: len(entry.fail_to_pass) + len(entry.pass_to_pass))


@pytest.fixture(scope="module")
def env(engine: str) -> Iterator[Software]:
    env = Software(split="smoke", reward="resolved", unreached=True)
    yield env
    env.close()


def solved(env: Software, name: str) -> None:
    # A real change that mends nothing is paid nothing, so it is the mend that is paid for.
    path = next(iter(problem(next(entry for entry in SMOKE if entry.id == name)).fix))
    env.reset(seed=0, options={"task": name})
    env.step(call_text("bash", command=f"echo >> {path}"))
    assert env.step(call_text("submit"))[1:3] == (0.0, True)
    env.reset(seed=0, options={"task": name})
    text, ended, paid = "", False, 0.0
    while not ended:
        text, reward, ended, _, _ = env.step(env.expert())
        paid += reward
    assert paid == 1.0, text


@pytest.mark.deep
def test_the_least_smoke_task_is_solved_by_the_expert_and_not_by_chance(env: Software) -> None:
    solved(env, LEAST.id)


@pytest.mark.slow
@pytest.mark.parametrize("name", [entry.id for entry in SMOKE])
def test_every_smoke_task_is_solved_by_the_expert_and_not_by_chance(env: Software, name: str) -> None:
    solved(env, name)


def test_smoke_tasks_need_no_download() -> None:
    assert len(SMOKE) >= 12 and {entry.library for entry in SMOKE} == {"networkx"}


def test_a_difficulty_keeps_its_tasks(engine: str) -> None:
    hard = Software(split="smoke", difficulty="hard", unreached=True)
    assert {task.difficulty for task in hard.tasks("smoke")} == {"hard"}
    with pytest.raises(ValueError, match="did you mean 'hard'"):
        Software(difficulty="hardly")


def test_a_split_without_its_sources_says_how_to_get_them(
    engine: str, tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not any(entry.split == "train" for entry in ours().entries):
        pytest.skip("the lock file has no training tasks")
    monkeypatch.setenv("MANYTURN_CACHE", str(tmp_path))
    with pytest.raises(NeedsSetup, match="manyturn data software"):
        Software(split="train")
    assert "smoke" in Software().splits
