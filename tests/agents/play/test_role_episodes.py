"""Of an episode of several roles everyone gets what is its own, and nobody what is another's."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyturn.agents.play.episode import Ending, Episode, TurnRecord
from manyturn.agents.play.role_episodes import returns_by_role, role_views
from manyturn.agents.tokens.episode_key import EpisodeKey
from manyturn.agents.tokens.ledger import Ledger
from manyturn.envs.contract.env.roles import ONE_ROLE, own_parts
from manyturn.envs.contract.tasks.task import Task

ROLES = ("a", "b")
TASK = Task("t", "train", {})
PARTS = st.dictionaries(st.sampled_from(["a.x", "b.x", "a.y", "shared", "other.z"]), st.integers(-3, 3).map(float))


def episode(turns: list[tuple[str, dict[str, float]]]) -> Episode:
    """Turns of (role, parts); each role's conversation grows by a token it sees and one that it says."""
    records, ledger, seen = [], Ledger(), {"a": [1], "b": [2]}
    for number, (role, parts) in enumerate(turns):
        seen[role] = [*seen[role], 100 + number]
        ledger.record(seen[role], [200 + number], [-0.5], number, [0.1], role)
        seen[role].append(200 + number)
        reward = float(sum(parts.values()))
        records.append(TurnRecord("o", "r", "a", True, True, reward, parts, "k", None, (0.0, 0.0), role=role))
    return Episode(EpisodeKey(0, "train/1", "t", 3), TASK, records, Ending.COMPLETED, ledger=ledger, success=True)


played = st.lists(st.tuples(st.sampled_from(ROLES), PARTS), min_size=1, max_size=8).map(episode)


@given(played)
def test_every_turn_is_in_one_share_with_the_tokens_of_its_agent_alone(whole):
    parted = role_views(whole, ROLES)
    assert sorted(place for share in parted for place in share.places) == list(range(len(whole.turns)))
    for share in parted:
        own = share.episode
        assert {turn.role for turn in own.turns} == {share.role} == {branch.role for branch in own.ledger.branches}
        assert own.key == EpisodeKey(0, "train/1", f"t#{share.role}", 3) and own.success
        for number, place in enumerate(share.places):
            assert own.ledger.prompt(number) == whole.ledger.prompt(place)
            assert own.ledger.reply(number) == whole.ledger.reply(place) == [200 + place]
            assert own.ledger.spans[number].version == place
        said = [
            t for branch in own.ledger.branches for t, said in zip(branch.ids, branch.reply_mask, strict=True) if said
        ]
        assert said == [200 + place for place in share.places]


@given(played)
def test_an_agent_earns_its_own_parts_and_the_shared_ones_from_its_first_turn_on(whole):
    for share in role_views(whole, ROLES):
        named = {f"{share.role}.x": "x", f"{share.role}.y": "y", "shared": "shared", "other.z": "other.z"}
        due = dict.fromkeys(named.values(), 0.0)
        for turn in whole.turns[share.places[0] :]:
            for part, value in turn.parts.items():
                if part in named:
                    due[named[part]] += value
        earned = dict.fromkeys(due, 0.0)
        for turn in share.episode.turns:
            assert turn.reward == sum(turn.parts.values())
            for part, value in turn.parts.items():
                earned[part] += value
        assert earned == due


def test_what_another_turn_brings_counts_at_the_last_turn_before_it():
    last = {"a.x": 2.0, "b.x": 4.0, "shared": 8.0}
    whole = episode([("a", {"b.x": 9.0}), ("b", {"a.x": 1.0}), ("a", {}), ("b", last)])
    a, b = role_views(whole, ROLES)
    assert [turn.parts for turn in a.episode.turns] == [{"x": 1.0}, {"x": 2.0, "shared": 8.0}]
    assert [turn.parts for turn in b.episode.turns] == [{}, {"x": 4.0, "shared": 8.0}]
    assert returns_by_role(whole, ROLES) == {"a": 11.0, "b": 12.0}


def test_an_unknown_reward_makes_its_owner_alone_unscorable():
    whole = episode([("a", {}), ("b", {"a.x": math.nan, "b.x": 1.0})])
    assert math.isnan(returns_by_role(whole, ROLES)["a"]) and returns_by_role(whole, ROLES)["b"] == 1.0


def test_one_who_had_no_turn_has_no_return_and_no_share():
    whole = episode([("a", {"a.x": 1.0, "b.x": 1.0})])
    assert [share.role for share in role_views(whole, ROLES)] == ["a"]
    assert math.isnan(returns_by_role(whole, ROLES)["b"])


def test_an_episode_of_one_role_is_its_own_view_untouched():
    whole = episode([("a", {"a.x": 1.0}), ("b", {})])
    [share] = role_views(whole, (ONE_ROLE,))
    assert share.episode is whole and share.places == [0, 1]


@pytest.mark.parametrize("names", [("a.x", "b.x", "shared"), ("b.x", "shared", "a.x")])
def test_a_stage_of_credit_names_parts_as_the_agents_do(names):
    assert set(own_parts(names, ROLES)) == {"x", "shared"}
