"""The customer by rules leaks nothing unasked, tells what it is asked for, and leaves."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyturn.envs.benchmarks.tau.rule_customer import Customer, CustomerOptions, first_person
from manyturn.envs.contract.tasks.task import Task

GOLD = [
    {"name": "find_user_id_by_email", "arguments": {"email": "ada@example.com"}, "by": "assistant"},
    {
        "name": "cancel_pending_order",
        "arguments": {"order_id": "#W1000001", "reason": "no longer needed"},
        "by": "assistant",
    },
]
TEXT = "You are Ada Stone in 11111. You want to cancel your order #W1000001, which you no longer need."
TASK = Task("test/retail/0", "test", {"scenario": TEXT, "gold": GOLD, "say": []})


def customer(task: Task = TASK, patience: int = 8) -> Customer:
    made = Customer(CustomerOptions(patience=patience), frozenset({"cancel_pending_order"}))
    made.begin(task, np.random.default_rng(0))
    return made


def test_the_opening_says_the_wish_without_ids() -> None:
    opening = customer().begin(TASK, np.random.default_rng(0))
    assert opening == "Hello. I want to cancel my order, which I no longer need."


@pytest.mark.parametrize(
    ("question", "fact"),
    [
        ("What is your e-mail address?", "ada@example.com"),
        ("Could you provide the order number?", "#W1000001"),
        ("Please tell me the reason.", "no longer needed"),
        ("What is your zip code?", "11111"),
    ],
)
def test_it_tells_what_it_is_asked_for(question: str, fact: str) -> None:
    assert fact in customer().hear(question).utterance


def test_it_agrees_to_its_own_order_and_corrects_another_once() -> None:
    made = customer()
    assert made.hear("Shall I cancel #W1000001? (yes/no)").utterance == "Yes, please go ahead."
    assert made.hear("Shall I cancel #W9999999?").utterance.startswith("No, not #W9999999.")


def test_it_leaves_when_its_changes_are_made_or_a_person_takes_over() -> None:
    assert customer().hear("Done.", {"done": 1}).done
    assert customer().hear("Please hold.", {"transferred": True}).done
    assert not customer().hear("Done.", {"done": 0}).done


def test_it_waits_until_it_is_told_what_it_wants_to_know() -> None:
    asking = Task("test/retail/1", "test", {"scenario": TEXT, "gold": GOLD[:1], "say": ["10.1"]})
    assert not customer(asking).hear("Hello!", {"told": 0}).done
    assert customer(asking).hear("It is 10.1.", {"told": 1}).done


@given(st.text(alphabet="abc .!", max_size=30), st.integers(1, 5))
def test_it_gives_up_after_as_many_useless_turns_as_it_is_patient(text: str, patience: int) -> None:
    made = customer(patience=patience)
    assert [made.hear(text).done for _ in range(patience)] == [False] * (patience - 1) + [True]


def test_texts_about_you_become_texts_about_me() -> None:
    assert first_person("You're late and your agent told you.") == "I'm late and my agent told I."
    assert first_person("Ask it to send you one; you have yours.") == "Ask it to send me one; I have mine."
