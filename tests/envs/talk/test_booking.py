"""Booking: only the right booking and true answers pay, whatever is said or called."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyturn.envs.talk.booking.env import Booking
from manyturn.envs.talk.booking.errands import LEVELS, goal_of, town_for
from manyturn.envs.talk.booking.expert_phrases import ask, book_text, query_text, tell
from manyturn.envs.talk.booking.tools import SHOWN
from manyturn.envs.talk.booking.town import KINDS, SLOTS, town_of
from manyturn.envs.tools.calls import call_text


def until(env: Booking, sign: str) -> str:
    """Play the expert until its next action contains a sign; that action."""
    for _ in range(env.max_turns):
        action = env.expert()
        if sign in action:
            return action
        assert not env.step(action)[2]
    raise AssertionError(f"the expert never said {sign!r}")


def begun(difficulty: str = "medium", number: int = 0, **kwargs) -> Booking:
    env = Booking(difficulty=difficulty, **kwargs)
    env.reset(seed=number, options={"task": f"train/{difficulty}/{number}"})
    return env


@pytest.mark.parametrize("number", range(6))
def test_a_wrong_booking_or_a_wrong_answer_fails_though_the_user_leaves_content(number):
    env = begun(number=number)
    booking = json.loads(until(env, '"book_'))
    booking["arguments"]["people"] = booking["arguments"]["people"] % 7 + 1
    env.step(json.dumps(booking))
    _, reward, ended, _, info = env.step(env.expert())
    assert ended and reward == 0 and info["success"] is False

    env = begun(number=number)
    text = until(env, "The reference is")
    _, reward, ended, _, info = env.step(text.replace(text[-7:-1], "AAA000"))
    assert ended and reward == 0 and info["success"] is False

    env = begun(number=number)
    _, reward, ended, _, info = env.step(until(env, "The reference is"))
    assert ended and reward == 1 and info["success"] is True and info["progress"] == 1


def test_a_wrong_booking_can_be_replaced():
    env = begun()
    action = until(env, '"book_')
    wrong = json.loads(action)
    wrong["arguments"]["people"] = wrong["arguments"]["people"] % 7 + 1
    first, second = (json.loads(env.step(text)[0])["reference"] for text in (json.dumps(wrong), action))
    assert first != second
    assert env.step(env.expert())[1] == 1


def test_of_two_values_the_last_counts():
    env = begun("easy")
    text = until(env, "The reference is")
    assert env.step(f"The reference is AAA000. Sorry: {text}")[1] == 1
    env = begun("easy")
    text = until(env, "The reference is")
    assert env.step(f"{text} No: it is AAA000, the reference.")[1] == 0


@pytest.mark.parametrize("difficulty", LEVELS)
def test_a_task_can_be_solved_as_drawn_and_only_after_giving_way(difficulty):
    for number in range(40):
        task = Booking(difficulty=difficulty).tasks("train")[number]
        town = town_for(task)
        for errand in task.params["errands"]:
            first, last = ({**errand["traits"], **errand["terms"], **extra} for extra in ({}, errand["fallback"]))
            free = [
                [
                    v
                    for v in town.find(errand["kind"], {k: wanted[k] for k in errand["traits"]})
                    if wanted["day"] not in v.full
                ]
                for wanted in (first, last)
            ]
            assert free[1] and bool(free[0]) is not bool(errand["fallback"])


@pytest.mark.parametrize("difficulty", ["tiny", "easy", "medium"])
def test_no_day_is_full_where_no_user_could_give_way(difficulty):
    """A policy cannot see which days are full, and would imitate an expert that can."""
    tasks = Booking(difficulty=difficulty).tasks("train")
    assert not any(venue.full for n in range(9) for kind in KINDS for venue in town_for(tasks[n]).venues[kind])


def test_the_lowest_level_can_be_told_from_what_the_user_says():
    """Its expert asks one question and acts on what it heard, so that whoever imitates it is missing nothing."""
    env = Booking(difficulty="tiny")
    for number in range(20):
        text = env.reset(seed=number, options={"task": f"train/tiny/{number}"})[0]
        heard = {name for name, slot in SLOTS.items() if slot.valued and slot.valued.search(text)}
        (errand,) = env.task.params["errands"]
        assert heard == set(errand["traits"]) and len(heard) == 2
        assert env.expert() == ask(list(errand["terms"]))


def test_a_query_lists_what_fits_and_says_how_many_there_are():
    env = begun("easy")
    answer = json.loads(env.step(call_text("query_restaurants", area="north"))[0])
    fit = env._desk.town.find("restaurant", {"area": "north"})
    assert answer["found"] == len(fit) and len(answer["first"]) == min(SHOWN, len(fit))
    assert all(row["area"] == "north" and "full" not in row for row in answer["first"])


@pytest.mark.parametrize(
    "call",
    [
        call_text("query_restaurants", area="nowhere"),
        call_text("book_table", name="x", day="monday", time="18:00", people="4"),
        call_text("cook"),
        '{"name": ',
    ],
)
def test_a_bad_call_is_answered_with_an_error_and_is_invalid(call):
    text, *_, info = begun().step(call)
    assert text.startswith("Error") and not info["understood"]


def test_a_full_day_and_an_unknown_venue_are_refused_and_book_nothing():
    env = begun("hard")
    venue = next(v for v in env._desk.town.venues["restaurant"] if v.full)
    terms = {"day": venue.full[0], "time": "18:00", "people": "2 people"}
    assert "fully booked" in env.step(book_text("restaurant", venue.name, terms))[0]
    assert "search first" in env.step(book_text("restaurant", "Nowhere", terms))[0]
    assert env._desk.booked == {}


@given(number=st.integers(0, 400), seed=st.integers(0, 400))
def test_the_user_opens_with_nothing_but_what_the_task_lets_it_tell(number, seed):
    env = Booking(difficulty="medium")
    text = env.reset(seed=seed, options={"task": f"test_unseen/medium/{number}"})[0].lower()
    goal = goal_of(env.task)
    assert all(goal.facts[slot] in text for slot in goal.opening)
    assert not any(value in text for slot, value in goal.facts.items() if slot not in goal.opening)


def test_noise_is_noticed_by_an_expert_that_reads_back():
    won = read_back = 0
    env = Booking("test", "medium", user={"kind": "agenda", "noise": 0.2})
    for number in range(40):
        env.reset(seed=number, options={"task": f"test/medium/{number}"})
        ended = False
        while not ended:
            action = env.expert()
            read_back += action.startswith("Is the")
            *_, terminated, truncated, info = env.step(action)
            ended = terminated or truncated
        won += info["success"]
    assert won >= 36 and read_back > 10


@pytest.mark.parametrize("difficulty", LEVELS)
def test_splits_share_nothing_that_is_booked_in_the_end(difficulty):
    def booked(split):
        tasks = Booking(difficulty=difficulty).tasks(split)
        return {
            json.dumps([{**e["traits"], **e["terms"], **e["fallback"]} for e in tasks[n].params["errands"]])
            for n in range(99)
        }

    train, validation, test, unseen = (booked(split) for split in Booking.splits)
    assert not train & (validation | test | unseen) and not validation & (test | unseen)


def test_values_of_one_slot_are_not_taken_for_another():
    for kind in KINDS:
        for venue in town_of("test", 24).find(kind, {}):
            for name, value in venue.facts().items():
                others = {other for other, slot in SLOTS.items() if slot.valued and slot.valued.fullmatch(value)}
                assert others <= {name}, (value, others)
    assert query_text("hotel", {"stars": "4 stars", "day": "monday"}) == call_text("query_hotels", stars=4)
    assert tell({"phone": "123-4567"}) == "The phone number is 123-4567."
