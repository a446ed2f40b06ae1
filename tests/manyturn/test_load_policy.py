"""A loaded policy must play by hand as it does in an evaluation, and must not be loaded for each of them."""

import asyncio
import shutil

import pytest

import manyturn as mt
from manyturn.terminal.overrides import OverrideError


def actions_by_hand(policy, env, task, **which):
    observation, info = env.reset(seed=0, options={"task": task})
    said = []
    with policy.episode(env, info, **which) as playing:
        ended = False
        while not ended:
            said.append((playing.act(observation, info), playing.last_act.reply))
            observation, _, terminated, truncated, info = env.step(said[-1][0])
            ended = terminated or truncated
    return said


def until_cut(turns):
    """Turns up to the first whose reply was cut: by hand an environment is shown an empty action then."""
    count = next((number for number, (action, _) in enumerate(turns, 1) if not action), len(turns))
    return turns[:count]


def test_a_reply_that_was_cut_is_no_action_by_hand(run):
    with mt.load_policy(str(run), sampling={"max_tokens": 1}) as policy:
        env = mt.make(policy.candidate.env)
        observation, info = env.reset(seed=0)
        with policy.episode(env, info) as playing:
            assert playing.act(observation, info) == "" and playing.last_act.reply


def evaluated(policy, **options):
    found = mt.evaluate(policy, limit=2, repeats=2, seed=3, **options)
    turns = {}
    for turn in found.turns:
        turns.setdefault((turn["task"], turn["member"]), []).append((turn["action"], turn["reply"]))
    return turns


@pytest.fixture
def run(tiny_run, tmp_path):
    return shutil.copytree(tiny_run, tmp_path / "run")


def test_its_replies_by_hand_are_those_of_an_evaluation_and_it_is_loaded_once(run):
    with mt.load_policy(str(run)) as policy:
        shutil.rmtree(run)
        first = evaluated(policy)
        env = mt.make(policy.candidate.env)
        by_hand = {key: actions_by_hand(policy, env, key[0], seed=3, repeat=key[1]) for key in first}
        assert {key: until_cut(turns) for key, turns in by_hand.items()} == {
            key: until_cut(turns) for key, turns in first.items()
        }
        assert evaluated(policy) == first
    assert len(first) == 4 and len({tuple(said) for said in first.values()}) > 1, "each draws for itself"


def test_it_plays_where_an_event_loop_runs(run):
    async def cell():
        with mt.load_policy(str(run)) as policy:
            env = mt.make(policy.candidate.env)
            return actions_by_hand(policy, env, env.unwrapped.tasks("test")[0].id)

    assert asyncio.run(cell())


@pytest.mark.parametrize("word", ["expert", "random"])
def test_a_scripted_policy_asks_the_callers_environment(word):
    env = mt.make("manyturn/Maze-v0", difficulty="easy")
    task = env.unwrapped.tasks("test")[0].id
    with mt.load_policy(word) as policy:
        by_hand = [action for action, _ in actions_by_hand(policy, env, task)]
        found = mt.evaluate(policy, "manyturn/Maze-v0", env_args={"difficulty": "easy"}, limit=1)
    assert [turn["action"] for turn in found.turns] == by_hand


def test_an_episode_that_was_forgotten_holds_up_nothing(run):
    """The engine starts when every open episode has asked: one that nobody asks for any more would stop it for ever."""
    with mt.load_policy(str(run)) as policy:
        env = mt.make(policy.candidate.env)
        observation, info = env.reset(seed=0)
        first = policy.episode(env, info)
        first.act(observation, info)
        second = policy.episode(env, info, repeat=1)
        second.act(observation, info)
        with pytest.raises(ValueError, match="its policy has begun another"):
            first.act(observation, info)
        assert len(evaluated(policy)) == 4
        with pytest.raises(ValueError, match="this episode is over"):
            second.act(observation, info)


def test_what_cannot_be_loaded_or_has_no_effect_is_refused(run):
    with pytest.raises(OverrideError, match=r"unknown option of load_policy 'samplin'.*sampling"):
        mt.load_policy(str(run), samplin={"temperature": 0.0})
    with pytest.raises(OverrideError, match="has no effect: expert draws no tokens"):
        mt.load_policy("expert", sampling={"temperature": 0.0})
    policy = mt.load_policy(str(run))
    with pytest.raises(OverrideError, match=r"has no effect: .* is loaded: give it to load_policy"):
        mt.evaluate(policy, sampling={"temperature": 0.0})
    policy.close()
    with pytest.raises(ValueError, match="is closed: load it again"):
        mt.evaluate(policy)
