"""Guessing: answers are true, information is counted right, and no split knows another's things."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyturn.envs.contract.stable_random import Draws
from manyturn.envs.talk.guessing.cities import TRAITS, draw_cities
from manyturn.envs.talk.guessing.env import GuessCity, TwentyQuestions
from manyturn.envs.talk.guessing.everyday_objects import THINGS
from manyturn.envs.talk.guessing.oracle import answer_in

ENVS = (TwentyQuestions, GuessCity)


@pytest.mark.parametrize("kind", ENVS)
@given(number=st.integers(0, 999), trait=st.integers(0, 11))
def test_answers_are_the_tables(kind, number, trait):
    env = kind()
    env.reset(seed=number, options={"task": f"train/easy/{number}"})
    asked = env._table.traits[trait]
    truth = env._table.rows[env.task.params["secret"]][asked.name]
    assert answer_in(env.step(asked.question)[0]) is truth


@pytest.mark.parametrize("kind", ENVS)
@given(number=st.integers(0, 999))
def test_information_adds_up_and_the_secret_is_never_ruled_out(kind, number):
    env = kind(difficulty="medium")
    env.reset(seed=number, options={"task": f"test/medium/{number}"})
    gained, ended = 0.0, False
    while not ended:
        assert env.task.params["secret"] in env._left
        *_, terminated, truncated, info = env.step(env.expert())
        gained, ended = gained + info["information"], terminated or truncated
    assert info["success"] and gained == pytest.approx(math.log2(len(env.task.params["choices"])))


def test_a_question_asked_twice_or_about_nothing_tells_nothing():
    env = TwentyQuestions()
    env.reset(seed=1)
    env.step("Is it alive?")
    assert env.step("Is it alive?")[4]["information"] == 0
    text, *_, info = env.step("What is the weather like?")
    assert not info["understood"] and info["information"] == 0 and answer_in(text) is None


@pytest.mark.parametrize("text", ["Is it not alive?", "Isn't it alive?", "Is it alive or made of metal?"])
def test_unclear_questions_are_asked_back_and_give_nothing_away(text):
    env = TwentyQuestions()
    env.reset(seed=1)
    answer, *_, info = env.step(text)
    assert info["information"] == 0 and answer_in(answer) is None and info["understood"]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Is it alive?", ["alive"]),
        ("tell me, is it a living thing", ["alive"]),
        ("Could I wear it?", ["worn"]),
        ("Is it bigger than a person?", ["large"]),
        ("Does it grow on a tree?", ["tree"]),
        ("Is it electric and made of metal?", ["electric", "metal"]),
        ("treetop catwalk", []),
    ],
)
def test_questions_are_understood_by_their_words(text, names):
    assert [trait.name for trait in THINGS.traits_in(text)] == names


def test_a_guess_ends_it_and_only_the_secret_pays():
    env = GuessCity()
    env.reset(seed=4)
    secret = env.task.params["secret"]
    other = next(name for name in env.task.params["choices"] if name != secret)
    assert not env.step("guess Atlantis")[2]
    assert env.step(f"guess {other}")[1:3] == (0.0, True)
    env.reset(seed=4)
    assert env.step(f"guess {secret.upper()}")[1:3] == (1.0, True)


def test_things_of_a_split_occur_in_no_other():
    names = {
        split: {name for n in range(200) for name in TwentyQuestions(split).tasks(split)[n].params["choices"]}
        for split in TwentyQuestions.splits
    }
    assert len(names["train"] | names["validation"] | names["test"]) == sum(map(len, names.values()))
    assert all(len(found) > 24 for found in names.values())


def test_every_trait_of_the_table_has_a_thing_and_every_thing_is_told_apart_from_most():
    for trait in THINGS.traits:
        assert any(row[trait.name] for row in THINGS.rows.values()), trait.name
    names = list(THINGS.rows)
    alike = sum(not THINGS.told_apart([a, b]) for i, a in enumerate(names) for b in names[:i])
    assert len(names) > 150 and alike < 20


@given(st.integers(0, 10_000))
def test_cities_of_an_atlas_can_be_told_apart(seed):
    table = draw_cities(Draws("test", seed), 8)
    assert len(table.rows) == 8 and table.told_apart(list(table.rows)) and table.traits == TRAITS


@pytest.mark.parametrize(
    ("said", "answer"),
    [("Yes.", True), ("yes, it is", True), ("No.", False), ("No, not at all", False), ("I do not know.", None),
     ("Nobody knows.", None), ("", None), ("Not at all.", False), ("Which do you mean?", None)],
)  # fmt: skip
def test_a_users_answer_is_read_as_it_begins(said, answer):
    assert answer_in(said) is answer
