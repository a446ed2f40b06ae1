"""The machinery of TextEnv must make illegal turns impossible and episodes repeatable."""

import json
from pathlib import Path

import pytest
from gymnasium.error import ResetNeeded
from gymnasium.vector import SyncVectorEnv
from hypothesis import given, settings
from hypothesis import strategies as st

from manyturn.envs.contract.env.text_env import TextEnv, Unsupported
from manyturn.envs.contract.env.turn import ContractError
from manyturn.envs.contract.registration.env_registry import make
from manyturn.envs.contract.tasks.task import Task

pytestmark = pytest.mark.versions

HERE = Path(__file__).parents[2]
ACTIONS = st.lists(st.sampled_from(["look", "", "é🙂", "win", *"0123456789"]), max_size=8)


def sound() -> TextEnv:
    return make(f"{HERE / 'broken.py'}:Sound").unwrapped


def faulty(**kwargs) -> TextEnv:
    return make(f"{HERE / 'faulty.py'}:Faulty", **kwargs).unwrapped


def run(env: TextEnv, actions: list[str]) -> list[tuple]:
    turns = []
    for action in actions:
        if not env._live:
            break
        turns.append(env.step(action))
    return turns


@settings(max_examples=60, deadline=None)
@given(st.sampled_from([sound, faulty]), ACTIONS, ACTIONS)
def test_an_episode_restored_elsewhere_goes_on_identically(kind, before, after):
    env, other = kind(), kind()
    env.reset(seed=5, options={"task": "validation/3"})
    run(env, before)
    data = env.snapshot()
    other.restore(data)
    assert (other.turn, other.observation, other.anchor()) == (env.turn, env.observation, env.anchor())
    assert run(env, after) == run(other, after)


def test_replay_that_comes_to_another_text_is_an_error_not_another_episode():
    env = faulty()
    env.reset(seed=5, options={"task": "test/0"})
    env.step("look")
    data = json.loads(env.snapshot())
    with pytest.raises(RuntimeError, match="depend on more than"):
        env.restore(json.dumps(data | {"seed": 6}).encode())


def test_save_without_load_says_so_and_snapshot_needs_an_episode():
    class Half(type(sound())):
        load = TextEnv.load

    env = Half()
    with pytest.raises(ResetNeeded):
        env.snapshot()
    env.reset(seed=0)
    with pytest.raises(Unsupported, match="load"):
        env.restore(env.snapshot())


@pytest.mark.parametrize(("reward", "fix"), [("inf", "give a number"), ("1e308", "divide it"), ("-1e10", "divide it")])
def test_a_part_that_learning_cannot_square_is_refused(reward, fix):
    env = faulty()
    env.reset(seed=0)
    with pytest.raises(ContractError, match=f"the reward part 'noise' is .*{fix}"):
        env.step(f"endless {reward}")


def test_max_turns_truncates_and_never_with_terminated():
    env = faulty(max_turns=2)
    env.reset(seed=0)
    assert env.step("a")[2:4] == (False, False)
    *_, terminated, truncated, info = env.step("a")
    assert (terminated, truncated, info["success"]) == (False, True, False)
    with pytest.raises(ResetNeeded):
        env.step("a")
    env.reset(seed=0)
    env.step("a")
    assert env.step("win")[2:4] == (True, False)


def test_outcome_cannot_be_paid_before_the_end():
    env = sound()
    for turn in (env.go_on, env.invalid):
        with pytest.raises(ValueError, match="succeed"):
            turn("text", outcome=1.0)
    assert env.succeed("text", step=0.5).parts == {"outcome": 1.0, "step": 0.5}
    assert env.fail("text").success is False


def test_reset_draws_by_seed_from_its_own_split():
    env = faulty(split="test")
    drawn = [env.reset(seed=seed)[1]["task"] for seed in range(40)]
    assert drawn == [env.reset(seed=seed)[1]["task"] for seed in range(40)]
    assert len(set(drawn)) > 10 and {env.find(name).split for name in drawn} == {"test"}
    assert len({env.reset()[1]["task"] for _ in range(20)}) > 1
    env.reset(seed=3)
    one = [env.reset()[0] for _ in range(3)]
    env.reset(seed=3)
    assert one == [env.reset()[0] for _ in range(3)]


def test_a_long_list_of_tasks_is_made_once_and_not_at_each_reset():
    class Counted(type(sound())):
        lists = 0

        def tasks(self, split):
            type(self).lists += 1
            return list(super().tasks(split))

    env = Counted()
    texts = [env.reset(seed=seed)[1]["task"] for seed in range(5)]
    assert Counted.lists == 1 and len(set(texts)) > 1
    env.reset(seed=5, options={"task": "test/0"})
    assert env.task.split == "test" and Counted.lists == len(env.splits)


def test_wrong_names_are_refused():
    env = faulty()
    with pytest.raises(ValueError, match="the only one is 'task'"):
        env.reset(options={"tsk": "test/0"})
    with pytest.raises(KeyError, match="what an id looks like"):
        env.reset(options={"task": "test/100"})
    with pytest.raises(ValueError, match="Faulty has train, validation, test"):
        faulty(split="tests")
    with pytest.raises(ValueError, match="at least 1"):
        faulty(max_turns=0)
    env.reset(seed=0)
    with pytest.raises(TypeError, match="an action is text"):
        env.step(3)
    assert env.turn == 0


def test_a_task_can_be_given_itself():
    env = sound()
    env.reset(seed=0, options={"task": Task("mine", "test", {"code": [1, 2, 3], "salt": 0})})
    assert [env.step(digit)[2] for digit in "123"] == [False, False, True]


def test_parts_given_by_one_turn_do_not_reach_the_next():
    env = sound()
    env.reset(seed=0, options={"task": "test/0"})
    info = env.step(env.expert())[4]
    info["reward_parts"]["digit"] = 99.0
    assert env.step(env.expert())[4]["reward_parts"] == {"digit": 0.125}


def test_gymnasium_vector_environments_take_any_text():
    vector = SyncVectorEnv([sound, sound])
    vector.reset(seed=[1, 2])
    observations, rewards, *_ = vector.step(["naïve 🙂", "x" * 10_000])
    assert list(observations) == ["Say one digit."] * 2 and list(rewards) == [0.0, 0.0]


def test_several_roles_without_a_word_on_who_acts_are_refused_at_the_first_reset():
    class Silent(type(sound())):
        roles = ("one", "other")

    class Spoken(Silent):
        def role(self):
            return self.roles[self.turn % 2]

        def notes(self):
            return {"mood": self.turn}

    with pytest.raises(Unsupported, match=r"override role\(\)"):
        Silent().reset(seed=0)
    env = Spoken()
    infos = [env.reset(seed=0)[1], env.step("look")[4]]
    assert [(info["role"], info["mood"]) for info in infos] == [("one", 0), ("other", 1)]
    assert "role" not in sound().reset(seed=0)[1]
