"""Questions are worth exactly what the environment says, and only those worth their price are asked by its expert."""

import itertools
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import manyturn as mt
from manyturn.envs.clarify.env import Clarify
from manyturn.envs.clarify.question_value import QuestionValues, Things
from manyturn.envs.clarify.requests import LEVELS, fitting
from manyturn.envs.contract.tasks.task import SPLITS, Task

ID = "manyturn/Clarify-v0"
NAMES = ("size", "colour")
THINGS = st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("abc"), st.integers(1, 9)), min_size=1, max_size=4)


def posed(params: dict, meant: int, **args) -> Clarify:
    """An episode of the same request, in which another thing is meant."""
    env = Clarify(**args)
    env.reset(seed=0, options={"task": Task("posed", "train", {**params, "meant": meant})})
    return env


def played(env: Clarify, action_of) -> tuple[float, float, dict]:
    """Return without the regret, the regret, and the last info."""
    earned = regret = 0.0
    while True:
        *_, terminated, truncated, info = env.step(action_of(env))
        parts = info["reward_parts"]
        regret += parts.get("regret", 0.0)
        earned += sum(parts.values()) - parts.get("regret", 0.0)
        if terminated or truncated:
            return earned, regret, info


def plainly(things: Things, left: tuple[int, ...], turns: int) -> Fraction:
    """Value of the best plan, by listing every plan without a table."""
    if not turns:
        return Fraction(0)
    weight = sum(things.odds[place] for place in left)
    ways = [Fraction(things.odds[place], weight) for place in left]
    for name, price in things.prices.items():
        after = Fraction(0)
        for value in {things.values[place][name] for place in left}:
            same = tuple(place for place in left if things.values[place][name] == value)
            after += Fraction(sum(things.odds[place] for place in same), weight) * plainly(things, same, turns - 1)
        ways.append(after - Fraction(price, 100))
    return max(ways)


@settings(max_examples=60)
@given(THINGS, st.tuples(st.integers(1, 40), st.integers(1, 40)), st.integers(1, 4))
def test_the_value_of_a_plan_is_that_of_the_best_of_all_plans(drawn, prices, turns):
    values = [dict(zip(NAMES, (size, colour), strict=True)) for size, colour, _ in drawn]
    things = Things(values, [count for *_, count in drawn], dict(zip(NAMES, prices, strict=True)))
    left = tuple(range(len(drawn)))
    assert QuestionValues(things).best(left, turns) == pytest.approx(float(plainly(things, left, turns)))


@pytest.mark.parametrize("level", LEVELS)
def test_what_the_expert_earns_on_average_over_what_is_meant_is_the_stated_value(level):
    env = Clarify(difficulty=level)
    for task in itertools.islice(env.tasks("train"), 12):
        fits = fitting(task.params)
        counts = [task.params["counts"][place] for place in fits]
        earned = [played(posed(task.params, place, difficulty=level), Clarify.expert)[0] for place in fits]
        mean = sum(a * b for a, b in zip(earned, counts, strict=True)) / sum(counts)
        things = Things(task.params["things"], task.params["counts"], task.params["prices"])
        assert mean == pytest.approx(QuestionValues(things).best(fits, env.max_turns))


def test_regret_is_what_a_policy_loses_on_average_and_the_expert_has_none():
    def asks_all(env: Clarify) -> str:
        actions = env.admissible()
        return actions[env.turn] if env.turn < 2 else actions[-1]

    for task in itertools.islice(Clarify().tasks("train"), 40):
        fits = fitting(task.params)
        counts = [task.params["counts"][place] for place in fits]
        lost, regrets = 0.0, 0.0
        for place, count in zip(fits, counts, strict=True):
            best, none, _ = played(posed(task.params, place, rewards="turns"), Clarify.expert)
            earned, regret, info = played(posed(task.params, place, rewards="turns"), asks_all)
            assert none == 0 and regret <= 0 and info["measures"]["regret"] == pytest.approx(-regret)
            lost, regrets = lost + count * (earned - best), regrets + count * regret
        assert lost == pytest.approx(regrets)


def test_evaluations_count_questions_that_had_no_value_and_choices_that_came_too_early():
    def never(observation, info):
        return next(action for action in info["admissible"] if action.startswith("bring"))

    def always(observation, info):
        return "ask colour" if not info["turn"] else never(observation, info)

    means = {}
    for policy in ("expert", never, always):
        measures = mt.evaluate(policy, ID, limit=40).summary["measures"]
        means[policy] = {name: figure["mean"] for name, figure in measures.items()}
    assert means["expert"]["needless"] == means["expert"]["missing"] == means["expert"]["regret"] == 0
    assert means[never]["questions"] == 0 and means[never]["missing"] > 0.3
    assert means[always]["questions"] == 1 and means[always]["needless"] > 0.3


DEEP = [level if level == "tiny" else pytest.param(level, marks=pytest.mark.deep) for level in LEVELS]


@pytest.mark.parametrize("level", DEEP)
def test_the_contract_holds_on_every_level(level):
    report = mt.check(ID, {"difficulty": level, "rewards": "turns"}, samples=5)
    assert report.passed, report


def test_nouns_with_named_attributes_of_test_unseen_occur_in_no_other_split():
    env = Clarify(difficulty="hard")
    structures = {
        split: {(task.params["noun"], *task.params["words"]) for task in itertools.islice(env.tasks(split), 150)}
        for split in env.splits
    }
    assert structures["test_unseen"].isdisjoint(set().union(*(structures[split] for split in SPLITS)))
    ambiguous = [len(fitting(task.params)) > 1 for task in itertools.islice(env.tasks("train"), 300)]
    assert 0.6 < sum(ambiguous) / 300 < 0.8


def test_the_thing_that_is_meant_follows_the_counts_that_are_shown():
    rows = [task.params for task in itertools.islice(Clarify().tasks("train"), 2000)]
    pairs = [row for row in rows if len(fitting(row)) == 2]
    shares = [row["counts"][fitting(row)[0]] / 20 for row in pairs]
    first = [row["meant"] == fitting(row)[0] for row in pairs]
    assert sum(first) == pytest.approx(sum(shares), abs=4 * (len(pairs) / 8) ** 0.5)
    likely = [hit for hit, share in zip(first, shares, strict=True) if share > 0.75]
    assert 0.8 < sum(likely) / len(likely) < 0.95
