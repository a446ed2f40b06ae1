"""The value of a question is the one that play finds, and what a policy asks is counted right."""

import dataclasses

import pytest

from manyturn.envs.classics.clarification import Clarification

CUPS = {
    "noun": "cup",
    "items": [("red", "small"), ("red", "large"), ("blue", "small"), ("blue", "large"), ("green", "medium")],
    "stated": {"colour": "red"},
    "meant": 1,
}


def posed(cost: float = 0.1, **changes) -> Clarification:
    env = Clarification(cost=cost)
    env.reset(seed=0, options={"task": dataclasses.replace(env.tasks("train")[0], params={**CUPS, **changes})})
    return env


def earned(env: Clarification) -> float:
    """Return of the expert from here on."""
    total, ended = 0.0, False
    while not ended:
        _, reward, ended, truncated, _ = env.step(env.expert())
        total, ended = total + reward, ended or truncated
    return total


@pytest.mark.parametrize("level", Clarification.levels)
@pytest.mark.parametrize("cost", [0.0, 0.1, 0.4])
def test_the_value_is_the_mean_that_the_expert_earns_over_all_that_may_be_meant(level, cost):
    env = Clarification(difficulty=level, cost=cost)
    for number in range(20):
        task, returns = env.tasks("train")[number], []
        for meant, item in enumerate(task.params["items"]):
            names = ("colour", "size", "material", "shape")[: len(item)]
            if all(item[names.index(name)] == value for name, value in task.params["stated"].items()):
                params = {**task.params, "meant": meant}
                env.reset(seed=0, options={"task": dataclasses.replace(task, params=params)})
                value = env.value()
                returns.append(earned(env))
        assert sum(returns) / len(returns) == pytest.approx(value)


def test_a_question_is_worth_what_it_saves_less_its_cost():
    env = posed()
    assert env.question_value("size") == pytest.approx(1 - 0.1 - 1 / 2)
    assert env.question_value("colour") == pytest.approx(-0.1)
    assert posed(cost=0.6).question_value("size") < 0 and posed(cost=0.6).expert() == "give red small cup"


@pytest.mark.parametrize(
    ("actions", "measures", "total"),
    [
        (["give red large cup"], {"questions": 0, "needless": 0, "missed": 1}, 1.0),
        (["ask size", "give red large cup"], {"questions": 1, "needless": 0, "missed": 0}, 0.9),
        (
            ["ask colour", "ask size", "ask size", "give red large cup"],
            {"questions": 3, "needless": 2, "missed": 0},
            0.7,
        ),
        (["ask size", "give red small cup"], {"questions": 1, "needless": 0, "missed": 0}, -0.1),
    ],
)
def test_needless_and_missing_questions_are_counted(actions, measures, total):
    env, rewards = posed(), []
    for action in actions:
        _, reward, _, _, info = env.step(action)
        rewards.append(reward)
    assert info["measures"] == measures and sum(rewards) == pytest.approx(total)
