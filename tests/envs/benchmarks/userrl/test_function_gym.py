"""Function: the rule is hidden, the test case cannot be tried, and only the right number pays."""

import inspect

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyturn.envs.benchmarks.userrl.files import DataError
from manyturn.envs.benchmarks.userrl.function_gym import Function
from manyturn.envs.benchmarks.userrl.number_rules import Rule
from manyturn.envs.conformance.check_runner import check

NAME = f"{inspect.getfile(Function)}:Function"


def begun(**kwargs) -> Function:
    env = Function(**kwargs)
    env.reset(seed=0, options={"task": env.tasks("train")[0].id})
    return env


def test_it_keeps_the_contract():
    report = check(NAME, samples=3)
    assert report.passed, str(report)
    assert report["expert"].figures["test"] == 1.0


def test_trying_shows_values_but_never_that_of_the_test_case():
    env = begun()
    case, value = env.task.params["case"], env.task.params["value"]
    tried = [number + 1 for number in case]
    observation = env.step("[action] " + " ".join(map(str, tried)))[0]
    assert float(observation.split("-> ")[1]) == pytest.approx(Rule(env.task.params["rule"])(tried), abs=1e-4)
    assert "->" not in env.step("[action] " + ", ".join(f"{number:g}" for number in case))[0]
    assert env.step("[search] test")[0] == "Test case: " + ", ".join(f"{number:g}" for number in case)
    assert env.step(f"[answer] {value + 1}")[:3] == ("That is wrong.", 0.0, False)
    assert env.step(f"[answer] {value}")[:3] == ("That is right.", 1.0, True)


@pytest.mark.parametrize(
    "action",
    ["1 2 3 4", "[action] 1 2 3", "[action] 1 2 3 4 5", "[action]", "[search] rule", "[answer] a lot", "[answer]",
     "[action] " + "9" * 400 + " 1 1 1", "[look] 1", "[answer] \u0661", "[action] \uff11 \uff12 \uff13 \uff14",
     "[answer] nan", "[answer] 1_0", "[answer] 1 2", "[answer]\u00a01", "[answer] 1" + " " * 5000],
)  # fmt: skip
def test_what_is_no_action_is_invalid_and_pays_nothing(action):
    _, reward, terminated, _, info = begun().step(action)
    assert (reward, terminated, info["understood"]) == (0.0, False, False)


@given(st.sampled_from(["[action] ", "[answer] ", "[search] ", "", "[finish]"]), st.text(max_size=60))
def test_only_the_value_pays(choice, text):
    env = begun()
    _, reward, _, _, info = env.step(choice + text)
    assert reward == 0.0 and not info.get("success")  # no text of so few characters happens to be the value


def test_numbers_beyond_all_bounds_are_answered():
    env = begun()
    for numbers in ("0 0 0 0", "1e9 1 1 1", f"{'9' * 39} {'9' * 39} {'9' * 39} {'9' * 39}", "-0.5 -0.5 -0.5 -0.5"):
        assert not env.step(f"[action] {numbers}")[2]


def test_made_rules_of_two_splits_are_different_functions():
    env = Function()
    keys = {split: {Rule(env.tasks(split)[n].params["rule"]).key for n in range(150)} for split in env.splits}
    assert keys["train"].isdisjoint(keys["test"]) and keys["train"].isdisjoint(keys["validation"])
    assert all(len(rules) > 100 for rules in keys.values())


def test_the_official_problems_are_played_with_their_splits(data):
    env = Function(data=data)
    counts = {split: len(env.tasks(split)) for split in env.splits}
    assert counts["test"] == 4 and counts["train"] + counts["validation"] == 36 and counts["validation"] > 0
    for task in env.tasks("test"):
        env.reset(seed=0, options={"task": task.id})
        assert env.step(env.expert())[4]["success"]


def test_a_record_whose_rule_does_not_give_its_value_is_refused(data):
    file = data / "gyms/FunctionGym/functiongym/data/functions.json"
    file.write_text(file.read_text().replace('"expected_result": 0.0', '"expected_result": 1.0'))
    with pytest.raises(DataError, match="does not give"):
        Function(data=data)
