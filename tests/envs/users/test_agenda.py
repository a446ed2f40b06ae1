"""The agenda user: it tells what it is asked and nothing else, whatever the agent writes."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyturn.envs.contract.random_keys import generator
from manyturn.envs.contract.tasks.task import Task
from manyturn.envs.users.acts import CONFIRM, INFORM, MORE, NOTHING_FOUND, REQUEST, Slot, understand
from manyturn.envs.users.agenda import AgendaOptions, AgendaUser, Goal
from manyturn.envs.users.phrases import AGENDA, UNSEEN_SPLIT, Phrases

SLOTS = (
    Slot("area", ("area", "part of town"), ("north", "south", "centre")),
    Slot("food", ("food", "cuisine"), ("thai", "indian", "greek")),
    Slot("day", ("day",), ("monday", "friday")),
    Slot("reference", ("reference",), pattern="[a-z]{3}[0-9]{3}"),
)
GOAL = Goal(
    wishes={"book": "a table"},
    facts={"area": "centre", "food": "thai", "day": "friday"},
    opening=("area",),
    requests=("reference",),
    fallbacks={"food": "indian"},
)
WORDS = (
    "what is the", "which", "area", "food", "day", "north", "indian", "monday", "thai", "?", ".", "there is nothing",
    "anything else", "shall i book", "reference", "abc123", "tell me", "sorry", "bye", "is it", "centre", "friday", "!",
)  # fmt: skip


def begun(goal: Goal = GOAL, split: str = "train", seed: int = 0, **options) -> tuple[AgendaUser, str]:
    user = AgendaUser(SLOTS, lambda task: goal, AgendaOptions(**options))
    return user, user.begin(Task("one", split, {"x": 1}), generator("test", seed))


def told(utterance: str) -> set[str]:
    return {value for value in ("thai", "indian", "friday") if value in utterance.lower()}


def test_a_dialogue_reaches_its_end_step_by_step():
    user, opening = begun()
    assert "a table" in opening and "centre" in opening.lower() and not told(opening)
    assert told(user.hear("What food would you like?").utterance) == {"thai"}
    assert told(user.hear("Sorry, there is no thai place.").utterance) == {"indian"}
    assert told(user.hear("And which day?").utterance) == {"friday"}
    heard = user.hear("It is booked.", {"done": ["book"]})
    assert not heard.done and "reference" in heard.utterance
    heard = user.hear("The reference is ABC123.")
    assert heard.done and heard.info["learnt"] == {"reference": "ABC123"}


@given(said=st.lists(st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join), max_size=8), seed=st.integers(0, 9))
def test_no_fact_is_told_before_it_is_asked_for_or_got_wrong(said, seed):
    user, _ = begun(seed=seed, patience=99)
    known: set[str] = set()
    for text in said:
        facts = {"food": "thai", "day": "friday"} | ({"food": "indian"} if "indian" in known else {})
        acts = understand(text, SLOTS, facts)
        heard = user.hear(text)
        new = told(heard.utterance) - known - told(text)
        allowed: set[str] = set()
        for act in acts:
            if act.kind in (REQUEST, INFORM, CONFIRM) and act.slot in ("food", "day"):
                allowed |= {"food": {"thai", "indian"}, "day": {"friday"}}[act.slot]
            if act.kind == MORE:
                allowed |= {"thai", "indian", "friday"}
            if act.kind == NOTHING_FOUND:
                allowed |= {"indian"}
        assert new <= allowed, (text, heard.utterance)
        known |= told(heard.utterance)
        if heard.done:
            break


@given(st.text(max_size=300))
def test_any_text_is_answered_and_never_with_what_was_not_asked(text):
    user, _ = begun()
    acts = understand(text, SLOTS, GOAL.facts)
    heard = user.hear(text)
    assert heard.utterance
    if not any(act.slot or act.kind == MORE for act in acts):
        assert not told(heard.utterance)


@given(st.lists(st.sampled_from(["Which food?", "Hm.", "It is in the north.", "Nothing is left.", "Bye."]), max_size=6))
def test_a_loaded_state_continues_as_the_saved_one_would_have(said):
    goal = Goal({"a": "one thing"}, {"food": "thai"}, requests=("reference",), then=GOAL)
    user, _ = begun(goal, patience=99)
    other, _ = begun(goal, seed=5, patience=99)
    user.hear("Which food? The reference is abc123.", {"done": ["a"]})
    for text in said:
        user.hear(text)
    other.load(json.loads(json.dumps(user.save())))
    other._rng.bit_generator.state = user._rng.bit_generator.state
    for text in ("Which day?", "What is the food?", "Anything else?", "The reference is xyz789."):
        assert other.hear(text, {"done": ["book"]}) == user.hear(text, {"done": ["book"]})


def test_a_second_goal_has_facts_of_its_own():
    user, _ = begun(Goal({"a": "one thing"}, {"food": "greek"}, then=GOAL))
    assert "greek" in user.hear("Which food?").utterance.lower()
    heard = user.hear("Done.", {"done": ["a"]})
    assert not heard.done and "a table" in heard.utterance and "centre" in heard.utterance.lower()
    assert "thai" in user.hear("Which food?").utterance.lower()


def test_the_user_gives_way_only_in_what_it_has_told():
    user, _ = begun()
    assert not told(user.hear("Sorry, there is nothing.").utterance)
    user.hear("Which food?")
    assert told(user.hear("Sorry, there is nothing.").utterance) == {"indian"}
    assert not told(user.hear("Sorry, there is nothing.").utterance)


@pytest.mark.parametrize("patience", [1, 4])
def test_an_agent_that_says_nothing_of_use_is_left(patience):
    user, _ = begun(patience=patience)
    ends = [user.hear("lorem ipsum").done for _ in range(patience + 1)]
    assert ends == [False] * patience + [True]


def test_wrong_values_are_denied_and_right_ones_confirmed_not_both_at_once():
    user, _ = begun()
    denied = user.hear("So it is north and friday, right?").utterance.lower()
    assert "north" in denied and "centre" in denied
    confirmed = [template.lower() for template in AGENDA._seen["confirm"]]
    assert not any(template in denied for template in confirmed)
    assert user.hear("So it is friday in the centre, right?").utterance.lower() in confirmed


def test_noise_mishears_values_and_the_truth_comes_out_when_they_are_read_back():
    misheard = 0
    for seed in range(200):
        user, _ = begun(seed=seed, noise=0.5)
        said = user.hear("Which food?").utterance.lower()
        misheard += "thai" not in said
        assert "thai" in said or "indian" in said or "greek" in said
    assert 60 < misheard < 140
    user, _ = begun(noise=0.5)
    assert "indian" in user.hear("Is it indian?").utterance.lower()
    assert user.name == "agenda(noise=0.5)" and begun()[0].name == "agenda"


def test_unseen_paraphrases_occur_in_no_other_split_and_each_act_has_six_to_learn_from():
    for act, templates in AGENDA._seen.items():
        assert len(set(templates)) >= 6, act
        assert len(set(AGENDA._unseen[act])) >= 3 and not set(AGENDA._unseen[act]) & set(templates)
    seen = {begun(seed=seed)[1] for seed in range(200)}
    unseen = {begun(seed=seed, split=UNSEEN_SPLIT)[1] for seed in range(200)}
    assert len(seen) >= 6 and len(unseen) >= 3 and not seen & unseen
    with pytest.raises(ValueError, match="'bye'"):
        Phrases({"bye": ["Bye."]}, {"bye": ["Bye."]})


@pytest.mark.parametrize(
    ("text", "acts"),
    [
        ("Which cuisine and what part of town?", [("request", "area"), ("request", "food")]),
        ("Please tell me the day", [("request", "day")]),
        ("Is it thai in the north?", [("confirm", "area"), ("confirm", "food")]),
        ("Reference: ABC123.", [("inform", "reference")]),
        ("Sorry, there is no thai food in the north.", [("nothing", "")]),
        ("Shall I go ahead?", [("confirm", "")]),
        ("Anything else? Goodbye!", [("more", ""), ("bye", "")]),
        ("The daylight and the foodie went northward.", []),
    ],
)
def test_what_an_agent_says_is_understood(text, acts):
    assert [(act.kind, act.slot) for act in understand(text, SLOTS, {})] == acts


@pytest.mark.timeout(60)  # seconds that hours of a quadratic search would not fit into
@pytest.mark.parametrize("text", ["what ", ".", "a.b", "is it north? "])
def test_the_time_for_a_flood_of_words_grows_no_faster_than_the_flood(text):
    understand(text * 300_000, SLOTS, GOAL.facts)
