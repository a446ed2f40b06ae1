"""The gyms with a user: what its authors' rules pay is paid, what is hidden stays hidden, and errors pay nothing."""

import inspect
import json
from pathlib import Path
from typing import Any

import pytest

from manyturn.envs.benchmarks.userrl.base_gym import Gym
from manyturn.envs.benchmarks.userrl.files import DataError
from manyturn.envs.benchmarks.userrl.intention_gym import Intention
from manyturn.envs.benchmarks.userrl.persuade_gym import STANCES, Persuade
from manyturn.envs.benchmarks.userrl.telepathy_gym import Telepathy
from manyturn.envs.benchmarks.userrl.turtle_gym import Turtle
from manyturn.envs.conformance.check_runner import check
from manyturn.envs.contract.registration.env_registry import NeedsSetup
from manyturn.envs.hosting.handle.env_handle import Answer, EnvError, EnvHandle

GYMS: dict[str, type[Gym]] = {"Intention": Intention, "Persuade": Persuade, "Telepathy": Telepathy, "Turtle": Turtle}
HIDDEN = {"Intention": "Taste", "Telepathy": "teeth", "Turtle": "hocolate"}
NO_ACTIONS = ("", "Is it big?", "[search] tools", "[action]", "[answer] \n", "{}", "[jump] up", "\x00")


def name_of(gym: str) -> str:
    return f"{inspect.getfile(GYMS[gym])}:{gym}"


def begun(gym: str, data: Path, endpoint: Any, **options: Any) -> Gym:
    env = GYMS[gym](data=data, user=endpoint.user(**options))
    env.reset(seed=0, options={"task": env.tasks("train")[0].id})
    return env


def paid(env: Gym, *actions: str) -> list[tuple[dict[str, float], bool]]:
    """The reward parts of each action, and whether it ended the episode."""
    return [(step[4]["reward_parts"], step[2]) for step in map(env.step, actions)]


def answer(response: str) -> dict[str, Any]:
    return {"thought": "", "response": response}


# ---- what is paid -------------------------------------------------------------------------------------------


def test_telepathy_pays_a_right_guess_and_nothing_else(data, endpoint):
    env = begun("Telepathy", data, endpoint)
    endpoint.says(answer("Yes"), {"thought": "", "right": False}, answer("Maybe"), {"thought": "", "right": True})
    actions = ("[action] Is it small?", "[answer] a saw", "[action] Is it old?", "[answer] a rake")
    assert paid(env, *actions) == [({}, False), ({}, False), ({}, False), ({"outcome": 1.0}, True)]
    assert env.measures() == {"score": 1.0}


def covers(*levels: str) -> dict[str, Any]:
    return {"thought": "", "covered": list(levels)}


def test_turtle_pays_what_a_story_exceeds_the_best_so_far(data, endpoint):
    env = begun("Turtle", data, endpoint)
    endpoint.says(covers("partly", "no"), covers("no", "fully"), covers("no", "no"), covers("fully", "no"),
                  covers("fully", "fully"))  # fmt: skip
    steps = [env.step("[answer] There was no hen.") for _ in range(5)]
    parts = [step[4]["reward_parts"] for step in steps]
    gains = [0.35, 0.0, 0.0, 0.35, 0.3]
    assert [sum(one.values()) for one in parts] == pytest.approx(gains)
    assert [list(one) for one in parts] == [["gain"], [], [], ["gain"], ["outcome"]]
    assert [step[2] for step in steps] == [False] * 4 + [True]
    assert "No hen." in steps[1][0] and "Chocolate." not in steps[1][0]


def test_a_truncated_story_keeps_what_it_was_paid(data, endpoint):
    env = Turtle(data=data, user=endpoint.user(), max_turns=1)
    env.reset(seed=0)
    endpoint.says(covers("fully", "partly"))
    _, reward, terminated, truncated, info = env.step("[answer] Eggs of chocolate.")
    assert (reward, terminated, truncated) == (pytest.approx(0.85), False, True)
    assert info["success"] is False and info["measures"] == {"score": pytest.approx(0.85)}


def holds(stance: str) -> dict[str, Any]:
    return {"thought": "", "response": "Hm.", "stance": stance}


def test_persuade_pays_each_step_towards_disagreement(data, endpoint):
    env = begun("Persuade", data, endpoint)
    stances = ("Agree", "Neutral", "Strongly Agree", "Neutral", "Neutral", "Strongly Disagree")
    endpoint.says(*map(holds, stances))
    steps = [env.step("[answer] Consider the cost.") for _ in stances]
    assert [step[1] * 6 for step in steps] == pytest.approx([1, 2, 0, 3, 0, 3])
    assert [step[4]["stance"] for step in steps] == list(stances)
    assert "outcome" in steps[-1][4]["reward_parts"] and steps[-1][4]["success"]
    assert "Your stance now: " + stances[-2] in endpoint.requests[-1]["messages"][0]["content"]
    assert len(json.loads(endpoint.requests[-1]["messages"][1]["content"])["so far"]) == 5


def asks(*details: int, wishes: bool = True) -> dict[str, Any]:
    return {"thought": "", "about_wishes": wishes, "details": list(details)}


def test_intention_pays_by_importance_and_for_focus(data, endpoint):
    env = begun("Intention", data, endpoint)
    endpoint.says(answer("Hm."), asks(0, wishes=False), answer("Cheap."), asks(1), answer("Hm."), asks(),
                  answer("Sweet and big."), asks(1, 0, 0))  # fmt: skip
    rewards = paid(env, *["[action] What do you like?"] * 4)
    assert rewards == [({}, False), ({"gain": 1.0}, False), ({}, False), ({"outcome": pytest.approx(0.5)}, True)]
    assert env.progress() == 1.0


def test_intention_hides_the_details_from_the_one_who_answers(data, endpoint):
    env = begun("Intention", data, endpoint)
    env.step("[action] What do you like?")
    replying, examining = (request["messages"][0]["content"] for request in endpoint.requests)
    assert "Taste" in examining and "Taste" not in replying
    assert "find me meal" in replying.lower()


# ---- what all have in common --------------------------------------------------------------------------------


@pytest.mark.parametrize("gym", HIDDEN)
def test_what_is_hidden_is_not_told_at_the_beginning(gym, data, endpoint):
    env = begun(gym, data, endpoint)
    assert HIDDEN[gym] not in env.observation + env.instructions and env.observation
    assert not endpoint.requests


@pytest.mark.parametrize("gym", GYMS)
@pytest.mark.parametrize(
    "action", ["", "Is it big?", "[search] tools", "[action]", "[answer] \n", "{}", "[jump] up", "\x00"]
)
def test_what_is_no_action_is_invalid_and_nobody_is_asked(gym, action, data, endpoint):
    _, reward, terminated, _, info = begun(gym, data, endpoint).step(action)
    assert (reward, terminated, info["understood"]) == (0.0, False, False) and not endpoint.requests


@pytest.mark.parametrize("gym", GYMS)
def test_giving_up_pays_nothing(gym, data, endpoint):
    assert paid(begun(gym, data, endpoint), "[finish]") == [({"outcome": 0.0}, True)]


@pytest.mark.parametrize("gym", GYMS)
@pytest.mark.parametrize(
    "reply",
    ["Yes", "{}", '{"thought": "", "response": "Perhaps", "right": 1, "covered": ["fully"], "stance": "Undecided"}',
     "{" * 9000, "x" * 1_000_000, '{"response": "\x00"}', b"<html>", "[1, 2]"],
)  # fmt: skip
def test_a_user_that_cannot_be_read_is_an_error_and_never_a_reward(gym, reply, data, endpoint):
    endpoint.answer = lambda request: reply
    handle = EnvHandle(name_of(gym), {"data": str(data), "user": endpoint.user(attempts=2)})
    handle.reset(handle.tasks("train")[0], 1)
    with pytest.raises(EnvError, match="JudgeError"):
        handle.step(f"[{GYMS[gym].choices[-1]}] the moon")
    assert len(endpoint.requests) in (2, 3)  # one of Intention's two questions may be answered well


def test_a_judgement_on_the_wrong_number_of_points_is_asked_for_again(data, endpoint):
    env = begun("Turtle", data, endpoint)
    endpoint.says(covers("fully"), covers("fully", "fully", "fully"), covers("fully", "fully"))
    assert paid(env, "[answer] Chocolate.") == [({"outcome": 1.0}, True)]
    env = begun("Intention", data, endpoint)
    endpoint.says(answer("Hm."), asks(3), asks(-1), asks(2))
    assert paid(env, "[action] How big?") == [({"gain": 0.4}, False)]


def test_only_open_details_can_be_covered(data, endpoint):
    env = begun("Intention", data, endpoint)
    endpoint.says(answer("Hm."), asks(1), answer("Hm."), asks(2), asks(1), answer("Hm."), asks(0))
    rewards = paid(env, *["[action] And?"] * 3)
    assert rewards == [({"gain": 1.0}, False), ({"gain": 0.4}, False), ({"outcome": 0.7}, True)]


def played(handle: EnvHandle, place: int) -> list[Answer]:
    choices = handle.env.unwrapped.choices
    steps = [handle.reset(handle.tasks("train")[place], place)]
    for number in range(4):
        if not steps[-1].ended:
            steps.append(handle.step(f"[{choices[number % len(choices)]}] Is it {number}?"))
    return steps


@pytest.mark.parametrize("gym", GYMS)
def test_a_recording_plays_again_without_a_model(gym, data, endpoint, tmp_path):
    file = str(tmp_path / "talks.jsonl")
    recorded = EnvHandle(name_of(gym), {"data": str(data), "user": endpoint.user(record=file)})
    steps = [played(recorded, place) for place in range(3)]
    before = len(endpoint.requests)
    replay = EnvHandle(name_of(gym), {"data": str(data), "user": {"kind": "replay", "file": file}})
    assert [played(replay, place) for place in range(3)] == steps
    assert len(endpoint.requests) == before and replay.user == "replay of model(m)"


@pytest.mark.parametrize("gym", GYMS)
def test_a_restored_episode_goes_on_as_the_other_would_have(gym, data, endpoint):
    one, two = (GYMS[gym](data=data, user=endpoint.user()) for _ in range(2))
    one.reset(seed=1)
    choice = f"[{one.choices[0]}]"
    one.step(f"{choice} First?")
    two.restore(one.snapshot())
    assert two.step(f"{choice} Second?") == one.step(f"{choice} Second?")
    assert endpoint.requests[-1] == endpoint.requests[len(endpoint.requests) // 2]


@pytest.mark.deep
@pytest.mark.parametrize("gym", GYMS)
def test_it_keeps_the_contract(gym, data, endpoint):
    report = check(name_of(gym), {"data": str(data), "user": endpoint.user()}, samples=2)
    assert report.passed, str(report)


# ---- files --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gym", GYMS)
def test_the_official_test_split_is_kept_and_train_is_divided(gym, data, endpoint):
    env = GYMS[gym](data=data, user=endpoint.user())
    ids = {split: {task.id.split("/")[1] for task in env.tasks(split)} for split in env.splits}
    assert len(ids["test"]) == 4 and all(one.lstrip("eip") in ("36", "37", "38", "39") for one in ids["test"])
    assert len(ids["train"]) + len(ids["validation"]) == 36 and ids["validation"]


def test_a_problem_of_train_that_stands_in_test_too_is_left_out(data, endpoint):
    folder = data / "data" / "persuasion_multiturn"
    (folder / "train.parquet").write_bytes((folder / "test.parquet").read_bytes())
    env = Persuade(data=data, user=endpoint.user())
    assert [len(env.tasks(split)) for split in env.splits] == [0, 0, 4]


@pytest.mark.parametrize("gym", GYMS)
def test_what_is_missing_is_named(gym, data, endpoint, tmp_path):
    with pytest.raises(NeedsSetup, match=r"git clone https://github\.com/SalesforceAIResearch/UserRL"):
        GYMS[gym](user=endpoint.user())
    with pytest.raises(NeedsSetup, match="the user of this gym is a language model"):
        GYMS[gym](data=data)
    with pytest.raises(DataError, match=r"there is no .*\.(json|parquet)"):
        GYMS[gym](data=tmp_path / "nowhere", user=endpoint.user())


@pytest.mark.parametrize("content", ["", "[]", "{", "[1]", '{"5": 7}', "[" * 100_000, '[{"id": "e0"}]'])
def test_a_strange_file_is_named(content, data, endpoint):
    (data / "gyms/TelepathyGym/telepathygym/data/all_entities_refined.json").write_text(content)
    with pytest.raises(DataError, match="is not as UserRL is") as caught:
        Telepathy(data=data, user=endpoint.user())
    assert "\n" not in str(caught.value)


def test_a_parquet_file_that_is_none_is_named(data, endpoint):
    (data / "data/persuasion_multiturn/test.parquet").write_bytes(b"PAR1")
    with pytest.raises(DataError, match="is no Parquet file"):
        Persuade(data=data, user=endpoint.user())


def test_the_stances_go_from_agreement_to_disagreement():
    assert len(STANCES) == 7 and STANCES[0] == "Strongly Agree" and STANCES[3] == "Neutral"
