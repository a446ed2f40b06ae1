"""Support: what helps must pay, and piling up the words that help must not."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyturn.envs.contract.random_keys import generator
from manyturn.envs.talk.support.cue_lexicon import (
    ADVISE,
    CUES,
    DISMISS,
    LISTEN,
    NEEDS,
    TOPICS,
    cues_in,
    topics_in,
    words_of,
)
from manyturn.envs.talk.support.env import LEVELS, Support
from manyturn.envs.talk.support.feelings import CHANGES, Feelings
from manyturn.envs.talk.support.help_seeker import PLIGHTS

ALL = [cue for need in NEEDS for cue in CUES[need]]


def some(count):
    return lambda env, rng: ". ".join(str(cue) for cue in rng.choice(ALL, count, replace=False))


STUFFING = {
    "every cue": lambda env, rng: ". ".join(ALL),
    "every cue and topic": lambda env, rng: ". ".join(ALL) + " " + " ".join(TOPICS),
    "every cue about the matter": lambda env, rng: ". ".join(ALL) + " " + env.task.params["matter"],
    "one cue of each kind": lambda env, rng: ". ".join(CUES[need][env.turn] for need in NEEDS),
    "one of each about the matter": lambda env, rng: (
        ". ".join(CUES[need][env.turn] for need in NEEDS) + " " + env.task.params["matter"]
    ),
    "two cues": some(2),
    "five cues": some(5),
    "a cue and every topic": lambda env, rng: f"{rng.choice(ALL)} {' '.join(TOPICS)}",
    "all cues of the right kind": lambda env, rng: ". ".join(CUES[env.task.params["need"]]) + env.task.params["matter"],
    "bare cues": some(1),
    "the same again": lambda env, rng: f"Tell me more about {env.task.params['matter']}.",
    "an echo and a cue": lambda env, rng: f"{env.observation} {rng.choice(ALL)}",
    "an echo and a cue of each kind": lambda env, rng: (
        env.observation + " " + ". ".join(CUES[need][env.turn] for need in NEEDS)
    ),
}


def score(policy, difficulty: str, count: int = 50) -> float:
    env, rng, total = Support("test", difficulty), generator("score"), 0.0
    for number in range(count):
        env.reset(seed=number, options={"task": f"test/{difficulty}/{number}"})
        ended = False
        while not ended:
            _, reward, terminated, truncated, _ = env.step(policy(env, rng))
            total, ended = total + reward, terminated or truncated
    return total / count


@pytest.mark.parametrize("difficulty", LEVELS)
def test_stuffing_scores_no_better_than_random_actions(difficulty):
    def by_random_policy(env, rng):
        able = env.admissible()
        return able[int(rng.integers(len(able)))]

    luck = score(by_random_policy, difficulty)
    assert 0.1 < luck < 0.35
    for name, policy in STUFFING.items():
        assert score(policy, difficulty) <= luck + 0.01, name
    assert score(lambda env, rng: env.expert(), difficulty) == 1


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Tell me more about your job.", "met"),
        ("Tell me more about your friends.", "helped"),
        ("Tell me more.", "unmoved"),
        ("Many people go through this at work.", "missed"),
        ("Tell me more about work. It is normal to struggle with it.", "scattered"),
        ("Calm down about work.", "dismissed"),
        ("Tell me more about your father and work.", "taboo"),
        ("Hm.", "unmoved"),
        ("", "unmoved"),
        ("work " * 41, "flooded"),
        ("Go on, tell me more, I am listening: work.", "flooded"),
        ("Work, money and health: tell me more.", "flooded"),
        ("They gave my task to a colleague. Tell me more.", "parroted"),
    ],
)
def test_each_way_to_be_treated_has_its_effect(text, kind):
    feelings = Feelings(LISTEN, "work", "family")
    reaction = feelings.hear(text, "They gave my task to a colleague.")
    assert reaction == (kind, CHANGES[kind]) and feelings.mood == 40 + CHANGES[kind]


def test_a_cue_pays_once_and_repeating_it_costs():
    feelings = Feelings(LISTEN, "work", "family")
    kinds = [feelings.hear("Tell me more about work.", "").kind for _ in range(3)]
    assert kinds == ["met", "repeated", "repeated"] and CHANGES["repeated"] < 0


@given(st.lists(st.one_of(st.text(max_size=80), st.sampled_from(ALL + list(TOPICS))), max_size=15))
def test_the_mood_stays_in_bounds_and_moves_by_ten_at_most(said):
    feelings = Feelings(ADVISE, "money", "love")
    for text in said:
        before = feelings.mood
        change = feelings.hear(text, "Hm.").change
        assert -10 <= change <= 10 and 0 <= feelings.mood <= 100 and feelings.mood == before + change
    other = Feelings(ADVISE, "money", "love")
    other.load(json.loads(json.dumps(feelings.save())))
    assert other.hear("I suggest a talk about money.", "") == feelings.hear("I suggest a talk about money.", "")


def test_every_sentence_of_the_lexicon_holds_its_own_cue_and_topic_only():
    env = Support()
    env.reset(seed=1)
    for kind in CUES:
        for cue in CUES[kind]:
            assert cues_in(words_of(cue)) == {kind: {cue}}, cue
    for action in env.admissible():
        assert len(cues_in(words_of(action))) == 1 and len(topics_in(words_of(action))) == 1, action
    assert len(CUES[DISMISS]) > 0 and all(len(CUES[need]) >= 10 for need in NEEDS)


def test_the_first_words_name_the_matter_and_hints_only_where_the_level_says_so():
    for difficulty, hints in (("easy", True), ("hard", False)):
        env = Support(difficulty=difficulty)
        env.reset(seed=3)
        params = env.task.params
        assert PLIGHTS[params["matter"]][params["plight"]] in env.observation
        assert (params["taboo"] in env.observation.lower()) is hints
    for topic, plights in PLIGHTS.items():
        assert all(topics_in(words_of(plight)) <= {topic} for plight in plights)


def test_the_outcome_is_the_last_mood_and_the_talk_ends_by_its_three_limits():
    env = Support(rewards="turns")
    for policy, ends in ((lambda: env.expert(), 100), (lambda: "hm", 20), (lambda: "calm down", 5)):
        env.reset(seed=2)
        ended, parts = False, {}
        while not ended:
            _, _, ended, truncated, info = env.step(policy())
            assert not truncated
            parts = info["reward_parts"]
        assert info["mood"] == ends and parts["outcome"] == ends / 100 and info["success"] is (ends == 100)


def test_cases_of_a_split_occur_in_no_other():
    def cases(split):
        tasks = Support().tasks(split)
        return {tuple(tasks[n].params[k] for k in ("matter", "plight", "taboo", "need")) for n in range(300)}

    train, validation, test, unseen = (cases(split) for split in Support.splits)
    assert not train & (validation | test | unseen) and not validation & (test | unseen)
