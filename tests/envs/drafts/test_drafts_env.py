"""Preferences show in edits only; who takes them over succeeds, and a policy of one style does not."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manyturn.envs.conformance.check_runner import check
from manyturn.envs.contract.random_keys import generator
from manyturn.envs.contract.registration.env_registry import make
from manyturn.envs.contract.tasks.task import is_held_out
from manyturn.envs.drafts.editor import Evidence, edit
from manyturn.envs.drafts.env import Drafts
from manyturn.envs.drafts.style import DEFAULT, SLOTS, message, styles
from manyturn.envs.drafts.tasks import LEVELS

ID = "manyturn/Drafts-v0"
ALL = tuple(SLOTS)


@pytest.mark.parametrize("level", LEVELS)
def test_the_expert_needs_no_edit_in_the_end_and_neither_chance_nor_one_style_gets_there(level: str) -> None:
    env, lucky, fixed, rng = Drafts(difficulty=level), 0, 0, generator("by chance", level)
    for split in env.splits:
        for task in env.tasks(split)[:20]:
            _, info = env.reset(seed=0, options={"task": task})
            while "success" not in info:
                action = env.expert()
                assert action in info["admissible"]
                *_, info = env.step(action)
            assert info["success"] and info["measures"]["late"] == 0.0 and info["progress"] == 1.0, task.id
            for policy in ("random", "fixed"):
                _, info = env.reset(seed=0, options={"task": task})
                while "success" not in info:
                    place = int(rng.integers(len(info["admissible"]))) if policy == "random" else 0
                    *_, info = env.step(info["admissible"][place])
                lucky += policy == "random" and info["success"]
                fixed += policy == "fixed" and info["success"]
    assert lucky == 0 and fixed <= 8  # of 80


@given(st.lists(st.sampled_from(styles(ALL)), max_size=6), st.sampled_from(styles(ALL)), st.integers(1, 6))
def test_evidence_is_never_wrong_and_a_few_edits_are_enough(drafts: list, wish: dict, most: int) -> None:
    evidence = Evidence(ALL, most)
    for draft in drafts:
        version, edited = edit(draft, wish, ALL, most)
        evidence.read(version, edited)
        assert all(wish[slot] == value for slot, value in evidence.shown.items())
        assert (edited == []) == (draft == wish)
    for _ in range(-(-len(ALL) // most)):
        evidence.read(*edit(evidence.best(), wish, ALL, most))
    assert evidence.best() == wish


def test_no_observation_says_a_preference_before_an_edit_shows_it() -> None:
    env = make(ID, difficulty="hard").unwrapped
    assert isinstance(env, Drafts)
    first = set()
    for number in range(20):
        text, _ = env.reset(options={"task": f"train/hard/{number}"})
        first.add(text.split()[0])
        assert not any(word in text for word in ("Dear", "Hi", "Hello", "Regards", "Thanks", "Cheers"))
    assert first == {"To"}


def test_an_edit_costs_its_share_of_words_and_a_draft_out_of_form_takes_a_turn_but_no_item() -> None:
    env = Drafts(difficulty="tiny", rewards="turns")
    env.reset(options={"task": "train/tiny/0"})
    text, reward, *_, info = env.step("Whatever you like.")
    assert not info["understood"] and reward == 0.0 and "To " in text
    wish = DEFAULT | env.task.params["preferences"][0]
    facts = env.task.params["items"][0]
    draft = next(style for style in styles(ALL[:1]) if style["greeting"] not in (wish["greeting"], "none"))
    version = message(facts, wish)
    *_, info = env.step(message(facts, draft | {slot: wish[slot] for slot in ("day", "closing")}))
    assert info["reward_parts"]["edits"] == pytest.approx(-1 / len(version.split()) / 3)
    assert env.observation.startswith(f"The user sends: {version}\n")
    *_, info = env.step(f"  {env.expert().upper()} ")
    assert info["understood"] and info["reward_parts"] == {}


def test_unseen_combinations_of_preferences_occur_in_no_other_split() -> None:
    for level in LEVELS:
        env = Drafts(difficulty=level)
        for split in env.splits:
            for task in env.tasks(split)[:60]:
                for wish in task.params["preferences"]:
                    assert is_held_out("preferences", wish) == (split == "test_unseen")


@pytest.mark.parametrize("count", [500, pytest.param(10_000, marks=pytest.mark.slow)])
def test_tasks_of_a_split_differ_in_content(count: int) -> None:
    assert len({task.content for task in Drafts(difficulty="tiny").tasks("train")[:count]}) == count


@settings(max_examples=40, deadline=None)
@given(st.lists(st.text(max_size=400), max_size=4))
def test_any_text_is_answered_and_none_of_it_succeeds(actions: list[str]) -> None:
    env = Drafts()
    env.reset(seed=0)
    for action in actions:
        text, reward, *_, info = env.step(action)
        assert text and reward == 0.0 and not info.get("success")


@pytest.mark.deep
@pytest.mark.parametrize("level", LEVELS)
def test_the_conformance_check_passes(level: str) -> None:
    report = check(ID, {"difficulty": level, "rewards": "turns"}, samples=3)
    assert report.passed, str(report)
