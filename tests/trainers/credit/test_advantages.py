"""What holds for methods that use tokens, values, memory or entropies, and for what a single method claims."""

import json
from dataclasses import replace

import numpy as np
import pytest
from credit_batches import advantage, batches, quick, rows, tokens_of, with_rewards
from hypothesis import assume, given
from hypothesis import strategies as st
from pydantic import ValidationError
from test_credit_properties import METHODS, SITUATION

from manyturn.trainers.credit.advantages.spo import SpoConfig, spo, task_weights
from manyturn.trainers.credit.batch.backward_recursion import Timeline
from manyturn.trainers.credit.batch.reply_tokens import token_rewards, whitened
from manyturn.trainers.credit.batch.turn_batch import TurnBatch
from manyturn.trainers.credit.pipeline import Credit, CreditConfig, credit
from manyturn.trainers.credit.stages import ADVANTAGES, MODULATIONS

GAE = [
    {"name": "gae", "gamma": 0.9, "lam": 0.8},
    {"name": "turn_gae", "bootstrap": True},
    {"name": "bilevel_gae", "gamma": 0.9, "lam": 0.8, "bootstrap": True},
    {"name": "dual_gae", "gamma": 0.9, "lam": 0.8, "critic_lam": 1.0, "bootstrap": True},
]
TOKENS = [*GAE, {"name": "reinforce_pp", "gamma": 0.9}]
SPO = {"name": "spo", "low": -100.0, "high": 100.0}
FIRST = {"name": "igpo", "baseline": "first"}
JOINT = {"name": "igpo", "baseline": "joint"}
LEVELS = [{"name": "igpo"}, JOINT, {"name": "igpo", "baseline": "separate"}, {"name": "mt_grpo"}]
CALLS = {"name": "stratified", "stratum": "calls", "edges": (1.0, 3.0)}
MODULATED = [
    {"name": "agentopsd", "decay": 0.8},
    {"name": "empg", "k": 2.0},
    {"name": "entropy_weight", "a": -0.5},
    {"name": "high_entropy_tokens", "share": 0.3},
    {"name": "policy_shaping"},
    {"name": "semantic_entropy"},
    {"name": "semantic_entropy", "alpha": 1.0, "falls": "exponential", "meaning": "actions"},
]
TREE = [{"name": "rtmc"}, {"name": "rtmc", "prior": 0.0, "std": False, "situation": "clock"}]
FORKS = [{"name": "forks"}, {"name": "forks", "baseline": "all", "between": "zero", "gamma": 0.9}]
FORKS += [{"name": "pav"}, {"name": "pav", "alpha": 3.0, "best_of": 1}]
ENTROPY = {"name": "arbitrary_entropy"}
JUDGED = {"name": "capo", "part": "step", "eps": 0.0}
IMPLICIT = [{"name": "istar"}, {"name": "istar", "norm": "std", "stats_over": "rows"}]
SAMPLES = [{"name": "psr_nsr"}, {"name": "psr_nsr", "learns": "negative", "goal": 0.5}]
RISK = [{"name": "riskpo", "bundle": 2}, {"name": "riskpo", "std": False, "weight": 0.0}]
PAIRS = [{"name": "turn_dpo"}, {"name": "turn_dpo", "situation": "history", "depth": 1, "threshold": 0.3}]
PAIRS += [{"name": "step_dpo"}, {"name": "copg", "beta": 0.5}, {"name": "agent_q", "part": "step", "alpha": 0.25}]
HARD = [*TOKENS, SPO, FIRST, {**JOINT, "gamma": 0.5}, CALLS, *TREE, *FORKS, *SITUATION, ENTROPY, JUDGED, *SAMPLES]
HARD += [*RISK, *IMPLICIT, *PAIRS]
EVERY = [({"advantage": method}) for method in HARD] + [{"advantage": "grpo", "modulation": [m]} for m in MODULATED]
PLAIN = [{"advantage": method} for method in SAMPLES]  # which compare nothing
COLUMNS = ("calls", "drift", "final_value", "action", "drawer", "tempered", "implicit", "reference", "guided")
by_method = pytest.mark.parametrize("stages", EVERY, ids=str)


def run(batch: TurnBatch, stages: dict) -> Credit:
    return credit(batch, CreditConfig(**stages))


def per_token(batch: TurnBatch, result: Credit) -> np.ndarray:
    return result.advantage_K[batch.turn_of_T] if result.token_T is None else result.token_T


def one_episode(reward: list[float], tokens: list[int], **columns: list[list[float]]) -> TurnBatch:
    lists = {name: [column] for name, column in columns.items()}
    final = {"final_value": [[0.5] * len(reward)]}
    return TurnBatch.from_episodes([reward], ["a"], tokens=[tokens], columns=final, token_columns=lists)


def test_every_method_is_asked_for_its_properties():
    asked = {method["name"] for method in [*METHODS, *HARD]}
    assert asked == {name for name in ADVANTAGES.names() if not name.startswith("test_")}
    assert {m["name"] for m in MODULATED} == {name for name in MODULATIONS.names() if not name.startswith("test_")}


@by_method
@quick
@given(batch=batches(unscorable=True), seed=st.integers(0, 99))
def test_order_of_turns_and_numbers_of_groups_do_not_matter(stages, batch, seed):
    rng = np.random.default_rng(seed)
    order_K, numbers = rng.permutation(len(batch.turn_K)), rng.permutation(100)
    shuffled = rows(
        batch,
        order_K,
        group_K=numbers[batch.group_K][order_K],
        group_names={int(numbers[group]): name for group, name in batch.group_names.items()},
    )
    one, other = run(batch, stages), run(shuffled, stages)
    order_T = tokens_of(batch, order_K)
    np.testing.assert_allclose(other.advantage_K, one.advantage_K[order_K], atol=1e-8)
    np.testing.assert_allclose(per_token(shuffled, other), per_token(batch, one)[order_T], atol=1e-8)
    if one.targets_T is not None:
        np.testing.assert_allclose(other.targets_T, one.targets_T[order_T], atol=1e-9)
    assert set(one.memory) == set(other.memory)
    for place, memory in one.memory.items():
        assert memory.keys() == other.memory[place].keys()
        for name, pair in memory.items():
            np.testing.assert_allclose(other.memory[place][name], pair)


@by_method
@quick
@given(batch=batches(unscorable=True))
def test_unscorable_episodes_get_zero_and_the_others_are_as_without_them(stages, batch):
    result = run(batch, stages)
    lost_T = ~batch.scorable_K[batch.turn_of_T]
    for part_K in (result.advantage_K, *result.levels.values()):
        assert (part_K[~batch.scorable_K] == 0).all()
    assert (per_token(batch, result)[lost_T] == 0).all()
    assert result.targets_T is None or np.isnan(result.targets_T[lost_T]).all()
    keep_K = np.flatnonzero(batch.scorable_K)
    assume(len(keep_K))
    kept, number_K = np.unique(batch.episode_K[keep_K], return_inverse=True)
    without = rows(batch, keep_K, episode_K=number_K, truncated_E=batch.truncated_E[kept])
    again = run(without, stages)
    np.testing.assert_allclose(again.advantage_K, result.advantage_K[keep_K], atol=1e-9)
    np.testing.assert_allclose(per_token(without, again), per_token(batch, result)[~lost_T], atol=1e-9)
    if result.targets_T is not None:
        np.testing.assert_allclose(again.targets_T, result.targets_T[~lost_T], atol=1e-9)


@by_method
def test_replies_without_a_token_and_single_turns_are_taken(stages):
    silent = TurnBatch.from_episodes(
        [[0.0, 1.0], [0.5]],
        groups=["a", "b"],
        tokens=[[0, 0], [0]],
        anchors=[["x", "y"], ["x"]],
        columns={name: [[0, 0], [0]] for name in COLUMNS},
        token_columns={name: [[[], []], [[]]] for name in ("value", "entropy", "teacher", "likelihood")},
    )
    columns = {name: [[0]] for name in COLUMNS}
    tokens = {"value": [[[0.5]]], "entropy": [[[1.0]]], "teacher": [[[0.5]]], "likelihood": [[[0.5]]]}
    single = TurnBatch.from_episodes([[1.0]], ["a"], anchors=[["x"]], columns=columns, token_columns=tokens)
    assert np.isfinite(run(silent, stages).advantage_K).all()
    assert stages in PLAIN or run(single, stages).advantage_K.tolist() == [0.0]


@pytest.mark.parametrize("method", TOKENS, ids=str)
@quick
@given(batch=batches(penalties=False), scale=st.sampled_from([0.5, 4.0, 1024.0]))
def test_the_scale_of_rewards_and_values_does_not_matter_after_whitening(method, batch, scale):
    columns = {name: column_T * scale for name, column_T in batch.token_columns.items()}
    final = {**batch.columns, "final_value": batch.columns["final_value"] * scale}
    parts = {name: part_K * scale for name, part_K in batch.parts.items()}
    scaled = replace(batch, parts=parts, columns=final, token_columns=columns)
    one, other = run(batch, {"advantage": method}), run(scaled, {"advantage": method})
    # The 1e-8 in the root of the variance does not grow with the rewards.
    np.testing.assert_allclose(per_token(scaled, other), per_token(batch, one), atol=1e-4)
    if one.targets_T is not None:
        np.testing.assert_allclose(other.targets_T, one.targets_T * scale, rtol=1e-9)


@pytest.mark.parametrize("method", [*LEVELS, {**FIRST, "gamma": 0.5}], ids=str)
@quick
@given(batch=batches(unscorable=True, penalties=False), scale=st.sampled_from([0.5, 4.0, 1024.0]))
def test_with_std_the_scale_of_turn_rewards_does_not_matter(method, batch, scale):
    parts = {name: part_K * scale for name, part_K in batch.parts.items()}
    exact = {**method, "eps": 0.0}
    # Where the first returns of a group are equal, "first" divides by 1, which does not grow with the rewards.
    assume(method["name"] != "igpo" or method.get("baseline") != "first" or spread_everywhere(batch))
    np.testing.assert_allclose(advantage(replace(batch, parts=parts), exact), advantage(batch, exact), atol=1e-7)


def spread_everywhere(batch: TurnBatch) -> bool:
    first_K = (batch.turn_K == 0) & batch.scorable_K
    return_K = batch.turn_return_K(0.5)
    return all(np.ptp(return_K[first_K & (batch.group_K == g)]) > 0 for g in np.unique(batch.group_K[first_K]))


# --- timelines and replies


@quick
@given(batch=batches(), factor=st.sampled_from([0.0, 0.5, 1.0]))
def test_sums_to_go_obey_their_recursion(batch, factor):
    value_K = batch.reward_K
    line = Timeline.of(batch.episode_K, batch.turn_K)
    there = {place: k for k, place in enumerate(zip(batch.episode_K, batch.turn_K, strict=True))}
    sums_K, next_K = line.to_go(value_K, factor), line.following(value_K, np.full(len(value_K), 99.0))
    for (episode, turn), k in there.items():
        later = there.get((episode, turn + 1))
        assert next_K[k] == (99.0 if later is None else value_K[later])
        assert sums_K[k] == pytest.approx(value_K[k] + factor * (0.0 if later is None else sums_K[later]))


@quick
@given(batch=batches())
def test_no_reward_is_lost_but_those_before_the_first_token(batch):
    column_T = batch.token_columns["reward"]
    E, episode_K = len(batch.truncated_E), batch.episode_K
    paid_E = np.zeros(E)
    for k, reward in enumerate(batch.reward_K):
        so_far_K = (episode_K == episode_K[k]) & (batch.turn_K <= batch.turn_K[k])
        paid_E[episode_K[k]] += reward if batch.tokens_K[so_far_K].any() else 0.0
    got_E = np.bincount(episode_K[batch.turn_of_T], token_rewards(batch) - column_T, E)
    np.testing.assert_allclose(got_E, paid_E, atol=1e-9)


@quick
@given(values=st.lists(st.integers(-4, 4), min_size=1, max_size=6), weights=st.data())
def test_whitening_counts_each_value_as_often_as_its_weight(values, weights):
    weight_P = np.array([weights.draw(st.integers(0, 3)) for _ in values])
    value_P = np.array(values, float)
    white_P = whitened(value_P, weight_P)
    repeated = np.repeat(value_P, weight_P)
    assert (white_P[weight_P == 0] == 0).all()
    if len(set(repeated.tolist())) < 2:
        assert (white_P == 0).all()
    else:
        expected = (repeated - repeated.mean()) / repeated.std(ddof=1)
        np.testing.assert_allclose(np.repeat(white_P, weight_P), expected, rtol=1e-6, atol=1e-9)


# --- values


def by_hand(reward: list, value: list, gamma: float, lam: float, end: float) -> list[float]:
    """Targets of a sequence of steps, step by step."""
    advantage, following, targets = 0.0, end, []
    for r, v in zip(reversed(reward), reversed(value), strict=True):
        advantage = r + gamma * following - v + gamma * lam * advantage
        following = v
        targets.append(advantage + v)
    return targets[::-1]


@pytest.mark.parametrize("at", ["first", "last"])
@pytest.mark.parametrize("bootstrap", [False, True])
@quick
@given(batch=batches(), gamma=st.sampled_from([0.5, 1.0]), lam=st.sampled_from([0.0, 0.7, 1.0]))
def test_targets_are_those_of_each_episode_by_itself(at, bootstrap, batch, gamma, lam):
    options = {"gamma": gamma, "lam": lam, "bootstrap": bootstrap}
    targets_T = run(batch, {"advantage": {"name": "gae", **options}}).targets_T
    turns_T = run(batch, {"advantage": {"name": "turn_gae", "value_at": at, **options}}).targets_T
    value_T, reward_T, episode_T = batch.token_columns["value"], token_rewards(batch), batch.episode_K[batch.turn_of_T]
    final_K = batch.columns["final_value"]
    parting_T = np.diff(batch.turn_of_T) > 0
    at_T = np.append(parting_T, True) if at == "last" else np.append(True, parting_T)
    at_T = at_T[: len(value_T)]
    for e, truncated in enumerate(batch.truncated_E):
        own_T = np.flatnonzero(episode_T == e)  # the batch is in time order
        if not len(own_T):
            continue
        end = np.nan_to_num(final_K[batch.episode_K == e][0]) if truncated and bootstrap else 0.0
        expected = by_hand(reward_T[own_T].tolist(), value_T[own_T].tolist(), gamma, lam, end)
        np.testing.assert_allclose(targets_T[own_T], expected, atol=1e-9)
        turn_T = own_T[at_T[own_T]]
        sums = [reward_T[(batch.turn_of_T == batch.turn_of_T[t])].sum() for t in turn_T]
        by_turn = by_hand(sums, value_T[turn_T].tolist(), gamma, lam, end)
        np.testing.assert_allclose(turns_T[turn_T], by_turn, atol=1e-9)
    assert np.isnan(turns_T[~at_T]).all()


def test_a_critic_that_has_read_a_bad_reply_does_not_excuse_it():
    """Two episodes part at their first reply, and the critic knows the outcome as soon as it has read that."""
    values = [[[0.5, 1.0], [1.0, 1.0]], [[0.5, 0.0], [0.0, 0.0]]]
    batch = TurnBatch.from_episodes(
        [[0, 1], [0, 0]], groups=[0, 0], tokens=[[2, 2], [2, 2]], token_columns={"value": values}
    )
    for lam in (0.0, 0.9):
        good, _, bad, _ = run(batch, {"advantage": {"name": "turn_gae", "gamma": 1.0, "lam": lam}}).advantage_K
        assert good > 0.5 and bad < -0.5
        late = run(batch, {"advantage": {"name": "turn_gae", "gamma": 1.0, "lam": lam, "value_at": "last"}})
        assert not late.advantage_K.any(), "at the last token nothing is left to be surprised at"


@quick
@given(batch=batches())
def test_bilevel_gae_is_turn_gae_where_replies_have_one_token(batch):
    said_K = np.flatnonzero(batch.tokens_K == 1)
    assume(len(said_K))
    episodes, number_K = np.unique(batch.episode_K[said_K], return_inverse=True)
    turn_K = np.arange(len(said_K)) - np.searchsorted(number_K, number_K)
    short = rows(batch, said_K, episode_K=number_K, turn_K=turn_K, truncated_E=batch.truncated_E[episodes])
    options = {"lam": 0.7, "bootstrap": True}
    bilevel = run(short, {"advantage": {"name": "bilevel_gae", "gamma_turn": 0.9, **options}})
    turn = run(short, {"advantage": {"name": "turn_gae", "gamma": 0.9, **options}})
    token = run(short, {"advantage": {"name": "gae", "gamma": 0.9, **options}})
    for other in (bilevel, token):
        np.testing.assert_allclose(other.advantage_K, turn.advantage_K, atol=1e-9)
        np.testing.assert_allclose(other.targets_T, turn.targets_T, atol=1e-9)


@pytest.mark.parametrize("method", [*TOKENS, SPO, FIRST, CALLS], ids=str)
@quick
@given(batch=batches())
def test_a_limit_changes_nothing_unless_values_bootstrap(method, batch):
    ended = replace(batch, truncated_E=np.zeros_like(batch.truncated_E))
    plain = {**method, "bootstrap": False} if method in GAE else method
    assert (advantage(batch, plain) == advantage(ended, plain)).all()


def test_a_penalty_reaches_the_tokens_of_its_own_turn_and_no_target():
    batch = one_episode([0.0, 0.0, 1.0], [2, 2, 2], value=[[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]])
    punished = replace(batch, penalty_K=np.array([0.0, 0.5, 0.0]))
    for method in GAE:
        before, after = run(batch, {"advantage": method}), run(punished, {"advantage": method})
        np.testing.assert_array_equal(before.targets_T, after.targets_T)
        before_T, after_T = per_token(batch, before), per_token(punished, after)
        others = [0, 1, 4, 5]  # whitening stretches and shifts them all alike
        line = np.polynomial.Polynomial.fit(before_T[others], after_T[others], deg=1)
        np.testing.assert_allclose(after_T[others], line(before_T[others]), atol=1e-9)
        assert (after_T[2:4] < line(before_T[2:4]) - 0.1).all()


@pytest.mark.parametrize("method", GAE, ids=str)
def test_values_that_are_missing_are_named(method):
    batch = one_episode([0.0, 1.0], [1, 1], value=[[0.5], [float("nan")]])
    with pytest.raises(ValueError, match="'value' is nan at reply token 1, whose episode is scorable"):
        run(batch, {"advantage": method})
    with pytest.raises(ValueError, match="no column 'value' over reply tokens"):
        run(replace(batch, token_columns={}), {"advantage": method})
    assert ADVANTAGES.parse(method).needs == {"value"} | ({"final_value"} if method.get("bootstrap") else set())


# --- methods of a group


@quick
@given(batch=batches(unscorable=True))
def test_baselines_agree_where_they_should(batch):
    equal = replace(batch, tokens_K=np.ones_like(batch.tokens_K), token_columns={})
    single = replace(rows(equal, np.flatnonzero(batch.turn_K == 0)), penalty_K=None)
    centred = {"name": "grpo", "std": False}
    for method in ({"name": "opo"}, {**centred, "stats_over": "rows"}):
        np.testing.assert_allclose(advantage(single, method), advantage(single, centred), atol=1e-12)
    np.testing.assert_allclose(advantage(batch, {"name": "loop", "threshold": 0.0}), advantage(batch, {"name": "rloo"}))
    free = with_rewards(replace(batch, penalty_K=None), batch.reward_K)
    for method in ({"name": "igpo"}, {"name": "mt_grpo"}):
        np.testing.assert_allclose(advantage(free, method), advantage(free, {"name": "grpo"}), atol=1e-12)
    one = credit(batch, CreditConfig(advantage={"name": "stratified", "stratum": "turns", "edges": (99.0,)}))
    np.testing.assert_allclose(one.levels["stratum"], advantage(batch, {"name": "grpo"}))


@quick
@given(batch=batches())
def test_the_advantages_of_opo_sum_to_zero_over_tokens(batch):
    sums = np.bincount(batch.group_K, advantage(batch, {"name": "opo"}) * batch.tokens_K)
    np.testing.assert_allclose(sums, 0, atol=1e-9)


@quick
@given(batch=batches(), threshold=st.sampled_from([0.1, 0.5, 2.0]))
def test_loop_drops_what_is_nearer_to_zero_than_the_threshold_and_nothing_else(batch, threshold):
    all_K, kept_K = (advantage(batch, {"name": "loop", "threshold": t}) for t in (0.0, threshold))
    np.testing.assert_array_equal(kept_K, np.where(np.abs(all_K) < threshold, 0.0, all_K))


def test_an_episode_is_compared_with_those_of_its_stratum():
    columns = {"calls": [[1, 1], [2], [0], [0]]}
    batch = TurnBatch.from_episodes([[0, 1.0], [0.0], [5.0], [3.0]], groups="aaaa", columns=columns)
    method = {"name": "stratified", "stratum": "calls", "blend": 1.0}
    assert np.sign(advantage(batch, method)).tolist() == [1, 1, -1, 1, -1]
    with pytest.raises(ValueError, match="no column 'call'; it has calls"):
        advantage(batch, {**method, "stratum": "call"})
    unknown = replace(batch, columns={"calls": [1, 1, float("nan"), 0, 0]})
    with pytest.raises(ValueError, match="'calls' is not known everywhere in episode 1"):
        advantage(unknown, method)
    with pytest.raises(ValidationError, match="do not ascend"):
        ADVANTAGES.parse({**method, "edges": (3.0, 1.0)})
    by_token = TurnBatch.from_episodes(
        [[0, 1.0], [0.0], [5.0], [3.0]],
        groups="aaaa",
        tokens=[[2, 0], [1], [0], [1]],
        token_columns={"calls": [[[1, 1], []], [[2]], [[]], [[0]]]},
    )
    np.testing.assert_array_equal(advantage(by_token, method), advantage(batch, method))


def test_turn_rewards_reach_back_and_outcomes_are_named():
    parts = {"outcome": [[0, 0.0], [0, 0.0]], "gain": [[0, 1.0], [0, 0.0]]}
    batch = TurnBatch.from_episodes(parts, groups=[0, 0])
    for name in ("igpo", "mt_grpo"):
        advantage_K = advantage(batch, {"name": name, "gamma": 0.5, "std": False})
        assert advantage_K[1] > 0 > advantage_K[3]
        assert advantage_K[0] > advantage_K[2]
        with pytest.raises(ValueError, match=f"{name}: unknown reward part 'success'.*there are gain, outcome"):
            advantage(batch, {"name": name, "outcome": "success"})
    with pytest.raises(ValidationError, match="outcome has no effect with baseline = 'turn': leave it out"):
        ADVANTAGES.parse({"name": "igpo", "baseline": "turn", "outcome": "gain"})
    with pytest.raises(ValidationError, match="eps has no effect with std = false"):
        ADVANTAGES.parse({"name": "mt_grpo", "std": False, "eps": 1e-3})


# --- SPO


def visits(rewards: list[float], config: SpoConfig) -> dict:
    memory = None
    for reward in rewards:
        batch = TurnBatch.from_episodes([[reward]], ["a"], columns={"drift": [[0.006]]})
        memory = json.loads(json.dumps(spo(batch, config, memory)[1]))  # as through a checkpoint
    return memory


@quick
@given(history=st.lists(st.integers(0, 4).map(lambda n: n / 4), min_size=1, max_size=30))
def test_a_tracked_value_stays_within_the_returns_and_moves_towards_them(history):
    alpha, beta = visits(history, SpoConfig())["a"]
    assert min(alpha, beta) > 0 and alpha + beta < 1 / (1 - 0.96) + 1
    assert 0.05 < task_weights({"a": [alpha, beta]}, ["a"])[0] <= 0.55
    raised, lowered = (visits([*history, end], SpoConfig())["a"] for end in (1.0, 0.0))
    assert raised[0] / sum(raised) > alpha / (alpha + beta) > lowered[0] / sum(lowered)


def test_values_of_a_changing_task_follow_it_faster_where_the_policy_drifts():
    history = [0.0] * 30 + [1.0] * 5
    slow, fast = (visits(history, config)["a"] for config in (SpoConfig(forgetting="steady"), SpoConfig(half=0.001)))
    assert slow[0] / sum(slow) < fast[0] / sum(fast)


@quick
@given(batch=batches(unscorable=True))
def test_tasks_without_a_scorable_episode_are_remembered_as_they_were(batch):
    config = SpoConfig(low=-100, high=100)
    before = {name: [2.0, 3.0] for name in "abcz"}
    _, after = spo(batch, config, before)
    seen = {batch.group_names[group] for group in batch.group_K[batch.scorable_K].tolist()}
    assert {name for name, pair in after.items() if pair != before[name]} == seen


def test_spo_says_what_it_lacks():
    batch = TurnBatch.from_episodes([[2.0]], ["a"])
    with pytest.raises(ValueError, match='no column "drift"; set forgetting = "steady"'):
        advantage(with_rewards(batch, np.array([1.0])), {"name": "spo"})
    steady = {"name": "spo", "forgetting": "steady"}
    with pytest.raises(ValueError, match=r"return is 2.0, outside 0.0 to 1.0: set low and high"):
        advantage(batch, steady)
    with pytest.raises(ValueError, match="group_names lack group 0"):
        advantage(replace(batch, group_names={}), steady)
    assert (SpoConfig().needs, SpoConfig(forgetting="steady").needs) == ({"drift"}, set())
    for wrong in ({"half": 0.1}, {"rho_min": 0.5}, {"rho_min": 0.97, "rho_max": 0.96}, {"low": 1.0}):
        with pytest.raises(ValidationError):
            ADVANTAGES.parse({**steady, **wrong})


@quick
@given(batch=batches(unscorable=True), seed=st.integers(0, 99))
def test_dual_discounts_that_are_equal_are_one_and_replies_of_one_token_are_turns(batch, seed):
    values = np.random.default_rng(seed).normal(size=int(batch.tokens_K.sum()))
    batch = replace(batch, token_columns={"value": values})
    inside, between = {"gamma": 0.9, "lam": 0.8}, {"gamma_turn": 0.9, "lam_turn": 0.8}
    dual = run(batch, {"advantage": {"name": "dual_gae", **inside, **between}})
    plain = run(batch, {"advantage": {"name": "gae", **inside}})
    np.testing.assert_allclose(dual.token_T, plain.token_T, atol=1e-9)
    np.testing.assert_allclose(dual.targets_T, plain.targets_T, atol=1e-9)
    values_K = np.resize(values, len(batch.turn_K))
    short = replace(batch, tokens_K=np.ones_like(batch.tokens_K), token_columns={"value": values_K})
    turns = run(short, {"advantage": {"name": "turn_gae", "gamma": 0.9, "lam": 0.8}})
    dual = run(short, {"advantage": {"name": "dual_gae", "gamma": 0.1, "lam": 0.1, "gamma_turn": 0.9, "lam_turn": 0.8}})
    np.testing.assert_allclose(dual.advantage_K, turns.advantage_K, atol=1e-9)
