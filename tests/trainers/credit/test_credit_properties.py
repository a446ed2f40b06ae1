"""What holds for credit whatever the batch."""

import time
from dataclasses import replace

import numpy as np
import pytest
from credit_batches import advantage, batches, quick, rewards, rows, with_rewards
from hypothesis import given
from hypothesis import strategies as st

from manyturn.trainers.credit.batch.turn_batch import TurnBatch
from manyturn.trainers.credit.pipeline import CreditConfig, credit

GRPO = [{"name": "grpo"}, {"name": "grpo", "std": False}, {"name": "grpo", "stats_over": "rows"}]
RLOO = [{"name": "rloo"}, {"name": "rloo", "stats_over": "rows"}]
GIGPO = [
    {"name": "gigpo"},
    {"name": "gigpo", "mode": "mean_std_norm"},
    {"name": "gigpo", "mode": "mean_std_norm", "stats_over": "rows", "gamma": 0.5, "turn_weight": 2.0},
]
BASELINES = [
    {"name": "opo"},
    {"name": "reinforce_pp_baseline"},
    {"name": "reinforce_pp_baseline", "stats_over": "rows"},
    {"name": "loop"},
    {"name": "loop", "std": True, "stats_over": "rows", "threshold": 0.5},
    {"name": "stratified", "stratum": "turns"},
    {"name": "stratified", "stratum": "turns", "edges": (2,), "blend": 1.0},
]
TURNS = [
    {"name": "igpo"},
    {"name": "igpo", "baseline": "turn", "std": False},
    {"name": "mt_grpo"},
]
GRAPH = [
    {"name": "graphgpo"},
    {"name": "graphgpo", "mode": "mean_std_norm", "measure": "progress", "goal": 0.5, "situation": "clock"},
    {"name": "g2po", "gain": "td"},
    {"name": "g2po", "mode": "mean_std_norm", "compare": "node", "situation": "history", "depth": 1},
]
SITUATION = [{"name": "situation_gae"}, {"name": "situation_gae", "gamma": 1.0, "std": False, "situation": "clock"}]
HISTORIES = [{"name": "hgpo"}, {"name": "hgpo", "mode": "mean_norm", "history": 1, "episodes": True}]
SIMILAR = {"name": "gigpo", "similarity": 0.75}  # of the anchors below each is like its neighbours alone
METHODS = GRPO + RLOO + GIGPO + BASELINES + TURNS + GRAPH + HISTORIES
RAW = [{**method, "singleton": "raw"} for method in GRPO + RLOO + GIGPO + BASELINES]
by_name = pytest.mark.parametrize("method", METHODS, ids=str)


@by_name
@quick
@given(batch=batches(unscorable=True), seed=st.integers(0, 99))
def test_order_of_turns_and_names_of_groups_do_not_matter(method, batch, seed):
    rng = np.random.default_rng(seed)
    order_K = rng.permutation(len(batch.turn_K))
    relabelled = rng.permutation(100)
    shuffled = rows(
        batch, order_K, group_K=relabelled[batch.group_K][order_K], anchor_K=relabelled[batch.anchor_K][order_K]
    )
    np.testing.assert_allclose(advantage(shuffled, method), advantage(batch, method)[order_K], atol=1e-9)


@pytest.mark.deep
@pytest.mark.parametrize("method", [*METHODS, SIMILAR, *RAW], ids=str)
@quick
@given(batch=batches(unscorable=True))
def test_unscorable_episodes_get_zero_and_the_others_are_as_without_them(method, batch):
    result = credit(batch, CreditConfig(advantage=method))
    advantage_K = result.advantage_K
    for part_K in (advantage_K, *result.levels.values()):
        assert (part_K[~batch.scorable_K] == 0).all()
    assert (np.isnan(batch.turn_return_K(0.9)) == ~batch.scorable_K).all()
    keep_K = np.flatnonzero(batch.scorable_K)
    if len(keep_K):
        kept, number_K = np.unique(batch.episode_K[keep_K], return_inverse=True)
        without = rows(batch, keep_K, episode_K=number_K, truncated_E=batch.truncated_E[kept])
        np.testing.assert_allclose(advantage_K[keep_K], advantage(without, method), atol=1e-12)


@by_name
@quick
@given(batch=batches(penalties=False), reward=rewards)
def test_a_group_of_one_gets_zero(method, batch, reward):
    E = len(batch.truncated_E)
    alone = replace(batch, group_K=batch.episode_K, anchor_K=np.arange(len(batch.turn_K)))
    assert (advantage(alone, method) == 0).all()
    assert credit(alone, CreditConfig(advantage=method)).diagnostics["groups_without_signal"] == 1.0
    single = TurnBatch.from_episodes([[reward]] * E, groups=range(E), anchors=[["x"]] * E)
    assert (advantage(single, method) == 0).all()


@by_name
@pytest.mark.parametrize("reward", [9.9, 0.1, 0.3, -1e6, 1e-9])
@pytest.mark.parametrize("members", [2, 3, 6, 7])
def test_equal_groups_get_exactly_zero(method, reward, members):
    batch = TurnBatch.from_episodes([[reward]] * members, groups=[0] * members, anchors=[["x"]] * members)
    assert (advantage(batch, method) == 0).all()


@by_name
def test_equal_episodes_of_many_turns_get_exactly_zero(method):
    batch = TurnBatch.from_episodes([[0.1, 0.2, 9.9]] * 6, groups=[0] * 6, anchors=[["x", "y", "z"]] * 6)
    assert (advantage(batch, method) == 0).all()


@by_name
@pytest.mark.parametrize("place", [3, 4], ids=["first turn", "later turn"])
def test_a_penalty_in_a_group_of_equal_returns_stays_small(method, place):
    """verl-agent divides it by eps when statistics are over episodes: -100,000."""
    batch = TurnBatch.from_episodes([[0, 0, 1]] * 4, groups=[0] * 4, anchors=[["x", "y", "z"]] * 4)
    penalty_K = np.zeros(12)
    penalty_K[place] = 0.1
    advantage_K = advantage(replace(batch, penalty_K=penalty_K), method)
    assert -8 < advantage_K[place] < 0
    assert (np.delete(advantage_K, place) >= 0).all()


@pytest.mark.parametrize("name", ["grpo", "rloo", "loop", "stratified"])
@pytest.mark.parametrize("place", [3, 4], ids=["first turn", "later turn"])
def test_a_penalty_is_the_affair_of_its_own_turn(name, place):
    """Taken for the score of its episode, that of a first turn would praise every other turn of the group."""
    batch = TurnBatch.from_episodes([[0, 0, 1]] * 4, groups=[0] * 4, anchors=[["x", "y", "z"]] * 4)
    penalty_K = np.zeros(12)
    penalty_K[place] = 0.1
    options = {"stratum": "turns"} if name == "stratified" else {}
    advantage_K = advantage(replace(batch, penalty_K=penalty_K), {"name": name, **options})
    assert advantage_K[place] < 0 and not np.delete(advantage_K, place).any()


@by_name
@quick
@given(batch=batches(unscorable=True), shift=st.integers(-20, 20))
def test_adding_to_every_return_changes_nothing(method, batch, shift):
    """The shift goes to last turns. Step returns take it discounted, so that methods with them get one turn each."""
    batch = with_rewards(batch, batch.reward_K)
    moved = {**method, "goal": method.get("goal", 1.0) + shift} if method["name"] == "graphgpo" else method
    if method["name"] in ("gigpo", "graphgpo", "g2po", "hgpo"):
        batch = rows(batch, np.flatnonzero(batch.turn_K == 0))
    _, last_E = np.unique(batch.episode_K[::-1], return_index=True)
    moved_K = batch.reward_K.copy()
    moved_K[len(moved_K) - 1 - last_E] += shift
    np.testing.assert_allclose(advantage(with_rewards(batch, moved_K), moved), advantage(batch, method), atol=1e-9)


@pytest.mark.parametrize("method", [GRPO[0], GRPO[2], GIGPO[1], GIGPO[2]], ids=str)
@quick
@given(batch=batches(unscorable=True, penalties=False), scale=st.sampled_from([0.5, 3.0, 1000.0]))
def test_with_std_the_scale_of_rewards_does_not_matter(method, batch, scale):
    batch, scaled = with_rewards(batch, batch.reward_K), with_rewards(batch, batch.reward_K * scale)
    np.testing.assert_allclose(
        advantage(scaled, {**method, "eps": 0.0}), advantage(batch, {**method, "eps": 0.0}), rtol=1e-6, atol=1e-9
    )


@pytest.mark.parametrize("method", [GRPO[0], GRPO[1], GRPO[2]], ids=str)
@quick
@given(batch=batches(penalties=False))
def test_advantages_of_a_group_sum_to_zero_over_what_its_statistics_count(method, batch):
    over_rows = method.get("stats_over") == "rows"
    counted_K = np.ones(len(batch.turn_K)) if over_rows else batch.turn_K == 0
    sums = np.bincount(batch.group_K, advantage(batch, method) * counted_K)
    np.testing.assert_allclose(sums, 0, atol=1e-9)


@quick
@given(batch=batches(unscorable=True))
def test_stages_carry_what_they_do_not_touch(batch):
    config = CreditConfig(
        rewards=["invalid_penalty", {"name": "part_weights", "weights": {"outcome": 2.0, "gain": 2.0}}],
        advantage="gigpo",
    )
    after = credit(batch, config).batch
    assert (after.truncated_E == batch.truncated_E).all()
    assert (after.tokens_K == batch.tokens_K).all()
    np.testing.assert_array_equal(after.reward_K, 2 * batch.reward_K)
    assert (after.penalty_K >= batch.penalty_K).all()


@quick
@given(batch=batches(), gamma=st.floats(0, 1))
def test_step_returns_obey_their_recursion(batch, gamma):
    free = replace(batch, penalty_K=None)
    return_of = dict(zip(zip(batch.episode_K, batch.turn_K, strict=True), free.turn_return_K(gamma), strict=True))
    for (episode, turn), value in return_of.items():
        reward = batch.reward_K[(batch.episode_K == episode) & (batch.turn_K == turn)][0]
        assert value == pytest.approx(reward + gamma * return_of.get((episode, turn + 1), 0.0))
    np.testing.assert_allclose(batch.turn_return_K(gamma), free.turn_return_K(gamma) - batch.penalty_K)


def test_similar_anchors_agree_with_equal_ones_where_nothing_is_alike():
    batch = TurnBatch.from_episodes(
        [[0.0, 1.0], [0.0, 0.0]], groups=[0, 0], anchors=[["abc", "xyz"], ["xyz", "abc"]], tokens=[[1, 2], [3, 4]]
    )
    np.testing.assert_array_equal(advantage(batch, {"name": "gigpo", "similarity": 0.9}), advantage(batch, GIGPO[0]))


@pytest.mark.slow
@by_name
def test_credit_of_51_200_turns_takes_less_than_a_second(method):
    rng = np.random.default_rng(0)
    E, T = 1024, 50
    batch = TurnBatch(
        group_K=np.repeat(np.arange(E) // 8, T),
        episode_K=np.repeat(np.arange(E), T),
        turn_K=np.tile(np.arange(T), E),
        parts={"outcome": rng.normal(size=E * T)},
        format_valid_K=rng.random(E * T) > 0.1,
        understood_K=np.ones(E * T, bool),
        tokens_K=np.ones(E * T, int),
        truncated_E=np.zeros(E, bool),
        anchor_K=rng.integers(0, 5000, E * T),
    )
    config = CreditConfig(rewards=["invalid_penalty"], advantage=method)
    times = []
    for _ in range(3):
        start = time.perf_counter()
        credit(batch, config)
        times.append(time.perf_counter() - start)
    assert min(times) < 1
