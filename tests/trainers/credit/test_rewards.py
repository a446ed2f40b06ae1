"""What reward stages promise whatever the batch, and what each does at its edges."""

import json
from dataclasses import replace

import numpy as np
import pytest
from credit_batches import batches, quick, rows
from hypothesis import given
from hypothesis import strategies as st

from manyturn.envs.contract.options.options import ConfigError
from manyturn.trainers.credit.batch.episode_sums import last_K
from manyturn.trainers.credit.batch.reward_parts import PATIENCE
from manyturn.trainers.credit.batch.turn_batch import TurnBatch
from manyturn.trainers.credit.pipeline import CreditConfig, credit
from manyturn.trainers.credit.rewards.gated import GatedConfig
from manyturn.trainers.credit.rewards.igpo import IgpoRewardConfig
from manyturn.trainers.credit.rewards.overlong import OverlongConfig
from manyturn.trainers.credit.rewards.spa import SpaConfig
from manyturn.trainers.credit.rewards.tiers import TiersConfig
from manyturn.trainers.credit.stages import REWARDS, Rewarded, StageConfig

GATES = [{"threshold": 0.5}, {"part": "step", "threshold": -0.25}]
STAGES = [
    {"name": "invalid_penalty"},
    {"name": "part_weights", "weights": {"step": 0.5, "outcome": 2.0}},
    {"name": "gated", "gates": GATES[:1]},
    {"name": "gated", "gates": GATES, "equal": "closes"},
    {"name": "clip_delta", "part": "step", "eta": 0.25},
    {"name": "calibration"},
    {"name": "rubric", "part": "step"},
    {"name": "rubric", "part": "step", "over": "all", "normalised": False},
    {"name": "renorm", "part": "step"},
    {"name": "attribution", "part": "step"},
    {"name": "opsd"},
    {"name": "spa", "completeness": "none", "wage": "by_turn"},
    {"name": "spa", "alpha": 0.5},
    {"name": "spa", "form": "released"},
    {"name": "igpo"},
    {"name": "igpo", "measure": "log"},
    {"name": "tiers"},
    {"name": "tiers", "paid": "turns"},
    {"name": "overlong", "max_tokens": 6, "buffer": 4},
    {"name": "overlong", "max_tokens": 3, "buffer": 2, "over": "reply"},
    {"name": "overlong", "share": 0.5},
    {"name": "overlong", "buffer_share": 0.9, "over": "reply"},
]
every_stage = pytest.mark.parametrize("stage", STAGES, ids=str)
scored = batches(unscorable=True)


def run(batch: TurnBatch, stage: dict | StageConfig, memory: dict | None = None) -> tuple[TurnBatch, dict, dict]:
    """The batch that a stage leaves, its figures, and what it remembers."""
    result, memory = REWARDS.apply_remembering(REWARDS.parse(stage), memory or {}, batch)
    rewarded = result if isinstance(result, Rewarded) else Rewarded(result)
    return rewarded.batch, dict(rewarded.diagnostics), dict(memory)


def furnished(batch: TurnBatch, seed: int) -> TurnBatch:
    """The batch with the columns that stages need; some beliefs and some progress are not known."""
    rng, K = np.random.default_rng(seed), len(batch.turn_K)
    unknown_K = rng.random(K) < 0.2
    unknown_K[0] = False
    columns = {
        "contribution": rng.integers(-8, 9, K) / 8,
        "belief": np.where(unknown_K, np.nan, rng.integers(0, 9, K) / 8),
        "prior": (rng.integers(1, 9, len(batch.truncated_E)) / 8)[batch.episode_K],
        "progress": np.where(unknown_K, np.nan, rng.integers(0, 9, K) / 8),
        "confidence": np.where(unknown_K, np.nan, rng.integers(0, 9, K) / 8),
        "longest_reply": np.full(K, 3.0),
        "longest_episode": np.full(K, 8.0),
    }
    parts = {"outcome": batch.parts["outcome"], "step": batch.parts["gain"]}
    unjudged_T = rng.random(len(batch.turn_of_T)) < 0.2
    unjudged_T[np.diff(batch.turn_of_T, prepend=-1) > 0] = False  # a turn without a judged token is unscorable
    ratios_T = np.where(unjudged_T, np.nan, rng.integers(-8, 9, len(batch.turn_of_T)) / 8)
    return replace(
        batch,
        parts=parts,
        columns=columns,
        token_columns={"teacher": ratios_T},
        format_valid_K=rng.random(K) < 0.7,
        understood_K=rng.random(K) < 0.7,
    )


def sums_E(batch: TurnBatch, value_K: np.ndarray) -> np.ndarray:
    return np.bincount(batch.episode_K, value_K)


# ---- every stage ------------------------------------------------------------------------------------------------


@every_stage
@quick
@given(batch=scored, seed=st.integers(0, 99))
def test_order_of_turns_and_names_of_groups_do_not_matter(stage, batch, seed):
    batch = furnished(batch, seed)
    rng = np.random.default_rng(seed)
    order_K = rng.permutation(len(batch.turn_K))
    shuffled = rows(batch, order_K, group_K=rng.permutation(100)[batch.group_K][order_K])
    (ours, figures, _), (theirs, same, _) = run(shuffled, stage), run(batch, stage)
    np.testing.assert_allclose(ours.reward_K, theirs.reward_K[order_K], atol=1e-12)
    np.testing.assert_allclose(ours.penalty_K, theirs.penalty_K[order_K])
    assert figures == pytest.approx(same, nan_ok=True)


@every_stage
@quick
@given(batch=scored, seed=st.integers(0, 99))
def test_what_was_unscorable_stays_so_and_nothing_else_becomes_it(stage, batch, seed):
    batch = furnished(batch, seed)
    after, _, memory = run(batch, stage)
    np.testing.assert_array_equal(np.isnan(after.episode_return_E()), np.isnan(batch.episode_return_E()))
    assert json.loads(json.dumps(memory)) == memory
    for name in ("episode_K", "turn_K", "group_K", "tokens_K", "truncated_E", "anchor_K"):
        assert getattr(after, name) is getattr(batch, name) or (getattr(after, name) == getattr(batch, name)).all()


@every_stage
@quick
@given(batch=scored, seed=st.integers(0, 99))
def test_an_episode_earns_the_same_whoever_else_is_in_the_batch(stage, batch, seed):
    batch = furnished(batch, seed)
    if stage.get("form") == "released" or (stage["name"] == "rubric" and stage.get("normalised", True)):
        batch = replace(batch, group_K=batch.episode_K)  # it compares with the task's other episodes
    after, _, _ = run(batch, stage)
    for episode in range(len(batch.truncated_E)):
        rows_K = np.flatnonzero(batch.episode_K == episode)
        if np.isnan(batch.columns["progress"][rows_K]).all():
            continue  # alone it is a batch without progress, which tiers refuses
        alone, _, _ = run(
            rows(batch, rows_K, episode_K=np.zeros(len(rows_K), int), truncated_E=batch.truncated_E[[episode]]), stage
        )
        np.testing.assert_allclose(alone.reward_K, after.reward_K[rows_K], atol=1e-12)


@every_stage
@quick
@given(batch=scored, seed=st.integers(0, 99))
def test_a_stage_adds_the_parts_that_its_configuration_says(stage, batch, seed):
    """By them later stages are told from misspelt names before a run begins."""
    batch = furnished(batch, seed)
    after, _, _ = run(batch, stage)
    assert after.parts.keys() - batch.parts.keys() == REWARDS.parse(stage).adds


def test_rounding_of_what_is_paid_out_by_turn_is_no_signal():
    """Contributions of 0.1 to 0.7 sum to the outcome up to a rounding error, which differs from episode to episode."""
    predicted = np.random.default_rng(0).random((8, 7)).tolist()
    batch = TurnBatch.from_episodes([[0.0] * 6 + [0.9]] * 8, groups="aaaabbbb", columns={"contribution": predicted})
    config = CreditConfig(
        rewards=({"name": "spa", "beta": 0.0, "completeness": "residual_to_last"},), advantage="mt_grpo"
    )
    found = credit(batch, config)
    assert np.unique(found.batch.episode_return_E()).size > 1, "or there is no rounding to look through"
    assert found.diagnostics["groups_without_signal"] == 1.0
    better = replace(batch, parts={"outcome": batch.parts["outcome"] + 1e-3 * (batch.episode_K == 0)})
    assert credit(better, config).diagnostics["groups_without_signal"] == 0.5


@pytest.mark.parametrize(
    ("stage", "part"),
    [("spa", "contribution"), ("spa", "grounding"), ("igpo", "gain"), ("tiers", "tier"), ("overlong", "overlong")],
)
def test_a_part_of_the_environment_is_never_overwritten(stage, part):
    columns = {name: [[0.5, 0.5]] for name in ("contribution", "belief", "progress")}
    batch = TurnBatch.from_episodes({"outcome": [[0, 1]], part: [[1, 1]]}, groups=[0], columns=columns)
    config = {"name": stage, **({"max_tokens": 9, "buffer": 1} if stage == "overlong" else {})}
    with pytest.raises(ValueError, match=f"{stage}: there is a reward part '{part}' already"):
        run(batch, config)


@pytest.mark.parametrize("stage", [{"name": "spa"}, {"name": "igpo"}, {"name": "tiers"}], ids=str)
def test_what_a_stage_needs_is_what_it_asks_the_batch_for(stage):
    [column] = REWARDS.parse(stage).needs
    with pytest.raises(ValueError, match=f"no column '{column}'"):
        run(TurnBatch.from_episodes([[0, 1]], groups=[0]), stage)


# ---- calibration ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chance", [0.0, 0.2, 0.5, 0.9, 1.0])
def test_a_policy_earns_most_by_saying_how_likely_its_success_is(chance):
    said = np.linspace(0, 1, 21)
    columns = {"confidence": [[q] for q in said] * 2}
    batch = TurnBatch.from_episodes([[1.0]] * 21 + [[0.0]] * 21, groups=[0] * 42, columns=columns)
    won, lost = np.split(run(batch, {"name": "calibration"})[0].reward_K, 2)
    assert said[np.argmax(chance * won + (1 - chance) * lost)] == pytest.approx(chance)


# ---- rubric -----------------------------------------------------------------------------------------------------


@quick
@given(batch=batches(unscorable=True), seed=st.integers(0, 99))
def test_no_failure_earns_by_evidence_and_no_success_less_than_its_share_of_the_outcome(batch, seed):
    batch = furnished(batch, seed)
    parts = {"outcome": np.sign(np.maximum(batch.parts["outcome"], 0)), "step": np.abs(batch.parts["step"])}
    batch = replace(batch, parts=parts)
    before_E, after = sums_E(batch, parts["outcome"]), run(batch, {"name": "rubric", "part": "step", "share": 0.25})[0]
    earned_E = after.episode_return_E()
    assert (earned_E[before_E == 0] == 0).all()
    assert (earned_E[before_E > 0] >= 0.75 * before_E[before_E > 0] - 1e-9).all()
    assert (earned_E[before_E > 0] <= before_E[before_E > 0] + 1e-9).all()


# ---- clip_delta -------------------------------------------------------------------------------------------------


@quick
@given(batch=batches(), seed=st.integers(0, 99))
def test_a_bounded_part_cannot_be_collected_by_more_turns(batch, seed):
    batch = furnished(batch, seed)
    first_E = sums_E(batch, np.where(batch.turn_K == 0, batch.parts["step"], 0.0))
    told_apart = run(batch, {"name": "clip_delta", "part": "step"})[0]
    np.testing.assert_allclose(sums_E(told_apart, told_apart.parts["step"]), first_E, atol=1e-9)
    assert (run(batch, {"name": "clip_delta", "part": "step", "eta": 0.5, "delta": False})[0].parts["step"] <= 0).all()


# ---- gated ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("equal", "counted"), [("opens", [1.0, 1.0, 0.0]), ("closes", [0.0, 1.0, 0.0])])
@quick
@given(threshold=st.integers(-8, 8).map(lambda n: n / 4))
def test_at_exactly_the_threshold_the_recipe_decides(equal, counted, threshold):
    """The outcome is spread over turns: the sum counts, not the last turn."""
    outcomes = [[0.5, threshold - 0.5], [0.5, threshold - 0.25], [0.5, threshold - 0.75]]
    batch = TurnBatch.from_episodes({"outcome": outcomes, "step": [[0.5, 0.5]] * 3}, groups=[0] * 3)
    after, figures, _ = run(batch, GatedConfig(gates=({"threshold": threshold},), equal=equal))
    np.testing.assert_array_equal(sums_E(after, after.parts["step"]), counted)
    np.testing.assert_array_equal(after.parts["outcome"], batch.parts["outcome"])
    assert figures["open_gates"] == pytest.approx(np.mean(counted))


def test_a_level_counts_only_if_all_above_it_are_open():
    parts = {"outcome": [[1], [1], [0]], "tests": [[1], [0], [1]], "style": [[0.5]] * 3, "cost": [[-0.25]] * 3}
    batch = TurnBatch.from_episodes(parts, groups=[0] * 3)
    gates = ({"threshold": 1}, {"part": "tests", "threshold": 1})
    after, figures, _ = run(batch, GatedConfig(gates=gates, ungated=("cost",)))
    np.testing.assert_array_equal(after.parts["tests"], [1, 0, 0])
    np.testing.assert_array_equal(after.parts["style"], [0.5, 0, 0])
    np.testing.assert_array_equal(after.parts["cost"], [-0.25] * 3)
    assert figures == {"open_gates": pytest.approx(1 / 3)}


def test_an_outcome_that_nobody_earned_is_0_at_the_gate():
    batch = TurnBatch.from_episodes({"step": [[1, 1], [1, 1]]}, groups=[0, 0])
    for threshold, earned in ((0.0, 2.0), (0.5, 0.0)):
        after, _, _ = run(batch, GatedConfig(gates=({"threshold": threshold},)))
        np.testing.assert_array_equal(after.episode_return_E(), [earned, earned])


def test_a_closed_gate_does_not_turn_an_unknown_reward_into_0():
    nan = float("nan")
    batch = TurnBatch.from_episodes({"outcome": [[0, 0], [0, 0]], "step": [[nan, 1], [1, 1]]}, groups=[0, 0])
    after, figures, _ = run(batch, {"name": "gated", "gates": GATES[:1]})
    np.testing.assert_array_equal(after.episode_return_E(), [nan, 0.0])
    assert figures["open_gates"] == 0.0
    lost = TurnBatch.from_episodes([[nan]], groups=[0])
    assert np.isnan(run(lost, {"name": "gated", "gates": GATES[:1]})[1]["open_gates"])


def test_gates_reach_the_credit_and_its_figures():
    batch = TurnBatch.from_episodes({"outcome": [[1], [0]], "step": [[0.5], [0.5]]}, groups=[0, 0])
    result = credit(batch, CreditConfig(rewards=[{"name": "gated", "gates": GATES[:1]}], advantage="grpo"))
    np.testing.assert_array_equal(result.batch.reward_K, [1.5, 0.0])
    assert result.diagnostics["open_gates"] == 0.5
    assert credit(result.batch, CreditConfig(advantage="grpo"), result.memory).memory == result.memory


# ---- named parts ------------------------------------------------------------------------------------------------


def test_a_rare_part_may_be_missing_from_a_batch():
    """A run must not stop because nobody happened to earn the bonus in a step."""
    stage = {"name": "part_weights", "weights": {"bonus": 2.0, "outcome": 0.0}}
    without = TurnBatch.from_episodes([[0, 1]], groups=[0])
    after, _, memory = run(without, stage)
    np.testing.assert_array_equal(after.reward_K, [0, 0])
    with_bonus = TurnBatch.from_episodes({"outcome": [[0, 1]], "bonus": [[0, 1]]}, groups=[0])
    after, _, memory = run(with_bonus, stage, memory)
    np.testing.assert_array_equal(after.reward_K, [0, 2])
    for _ in range(2 * PATIENCE):
        memory = json.loads(json.dumps(run(without, stage, memory)[2], sort_keys=True))


def test_the_outcome_is_a_part_though_no_episode_has_ended_yet():
    stage, memory = {"name": "part_weights", "weights": {"outcome": 2.0}}, {}
    batch = TurnBatch.from_episodes({"step": [[0, 1]]}, groups=[0])
    for _ in range(PATIENCE + 1):
        after, _, memory = run(batch, stage, memory)
    np.testing.assert_array_equal(after.reward_K, [0, 1])


@pytest.mark.parametrize(
    "stage",
    [
        {"name": "part_weights", "weights": {"bonsu": 2.0}},
        {"name": "gated", "gates": [{"threshold": 1}], "ungated": ["bonsu"]},
        {"name": "gated", "gates": [{"threshold": 1}, {"part": "bonsu", "threshold": 1}]},
    ],
    ids=str,
)
def test_a_misspelt_part_is_found_as_soon_as_the_right_one_is_seen(stage):
    _, _, memory = run(TurnBatch.from_episodes([[0, 1]], groups=[0]), stage)
    with pytest.raises(ValueError, match=r"unknown reward part 'bonsu'; did you mean 'bonus'.*part_names"):
        run(TurnBatch.from_episodes({"outcome": [[0, 1]], "bonus": [[0, 1]]}, groups=[0]), stage, memory)


def test_a_part_that_never_comes_is_told_after_the_first_batches():
    stage, memory = {"name": "part_weights", "weights": {"jackpot": 2.0}}, {}
    batch = TurnBatch.from_episodes([[0, 1]], groups=[0])
    for _ in range(PATIENCE - 1):
        _, _, memory = run(batch, stage, memory)
    with pytest.raises(ValueError, match=r"unknown reward part 'jackpot'.*part_names"):
        run(batch, stage, memory)


# ---- spa --------------------------------------------------------------------------------------------------------


@quick
@given(batch=scored, seed=st.integers(0, 99), alpha=st.sampled_from([1.0, 0.5]))
def test_complete_contributions_sum_to_the_outcome(batch, seed, alpha):
    batch = furnished(batch, seed)
    paid, _, _ = run(batch, SpaConfig(alpha=alpha))
    wanted_E = alpha * sums_E(batch, batch.parts["outcome"])
    np.testing.assert_allclose(sums_E(paid, paid.parts["contribution"]), wanted_E, atol=1e-12)
    assert not np.nan_to_num(paid.parts["outcome"]).any()
    np.testing.assert_array_equal(paid.parts["step"], batch.parts["step"])
    assert (sums_E(paid, paid.parts["grounding"]) <= 0.5).all(), "an episode that dawdles would live on its wage"
    np.testing.assert_array_equal(paid.parts["grounding"] > 0, batch.understood_K)


def test_contributions_that_explain_too_little_leave_the_outcome_where_it_was():
    """A wage, and what noise was taken for, stayed in the rewards."""
    weight = {"contribution": [[0.0, 0.0], [0.0]], "contribution_weight": [[0.0, 0.0], [0.0]]}
    batch = TurnBatch.from_episodes([[0, 1.0], [0.5]], groups="aa", columns=weight)
    np.testing.assert_array_equal(run(batch, SpaConfig())[0].reward_K, batch.reward_K)
    with pytest.raises(ConfigError, match="give 1 or less, or set wage = 'by_turn'"):
        SpaConfig(beta=2.0)


def test_the_released_form_leaves_unscorable_episodes_out_of_the_comparison():
    nan = float("nan")
    batch = TurnBatch.from_episodes(
        [[0, 1.0], [0.5], [nan], [2.0]], groups="aaab", understood=[[False, False]] + [[False]] * 3
    )
    paid, _, _ = run(batch, SpaConfig(form="released"))
    np.testing.assert_allclose(paid.reward_K, [0.5, 1.0, 0.0, nan, 2.5])


@pytest.mark.parametrize("changes", [{"alpha": 0.5}, {"completeness": "none"}, {"wage": "by_turn"}])
def test_options_without_effect_in_the_released_form_are_refused(changes):
    with pytest.raises(ConfigError, match="no effect with form = 'released'"):
        SpaConfig(form="released", **changes)
    assert not SpaConfig(form="released").needs


# ---- igpo -------------------------------------------------------------------------------------------------------


@quick
@given(batch=scored, seed=st.integers(0, 99))
def test_gains_sum_to_what_was_learnt_before_the_answer(batch, seed):
    batch = furnished(batch, seed)
    gain_K = run(batch, IgpoRewardConfig())[0].parts["gain"]
    for episode in range(len(batch.truncated_E)):
        rows_K = np.flatnonzero(batch.episode_K == episode)
        rows_K = rows_K[np.argsort(batch.turn_K[rows_K])]
        beliefs = [batch.columns["prior"][rows_K[0]], *batch.columns["belief"][rows_K[:-1]]]
        known = [belief for belief in beliefs if not np.isnan(belief)]
        assert gain_K[rows_K].sum() == pytest.approx(known[-1] - known[0])
        assert gain_K[rows_K[-1]] == 0.0


def test_an_unknown_belief_is_passed_over():
    nan = float("nan")
    batch = TurnBatch.from_episodes([[0, 0, 0, 1]], groups=[0], columns={"belief": [[0.25, nan, 0.75, 1.0]]})
    np.testing.assert_array_equal(run(batch, IgpoRewardConfig())[0].parts["gain"], [0, 0, 0.5, 0])
    logs_K = run(batch, IgpoRewardConfig(measure="log", weight=2.0))[0].parts["gain"]
    np.testing.assert_allclose(logs_K, [0, 0, 2 * np.log(3), 0])
    wrong = replace(batch, columns={"belief": np.array([0.0, 0.5, 1.5, 0.0])})
    with pytest.raises(ValueError, match=r"'belief' holds 1.5, which is no probability"):
        run(wrong, IgpoRewardConfig())


# ---- tiers ------------------------------------------------------------------------------------------------------


@quick
@given(batch=scored, seed=st.integers(0, 99), alpha=st.floats(0.01, 0.99))
def test_tiers_paid_by_turns_sum_to_those_paid_at_the_end(batch, seed, alpha):
    batch = furnished(batch, seed)
    by_turns, at_end = (run(batch, TiersConfig(alpha=alpha, paid=paid))[0] for paid in ("turns", "end"))
    earned_E = sums_E(at_end, at_end.parts["tier"])
    np.testing.assert_allclose(sums_E(by_turns, by_turns.parts["tier"]), earned_E, atol=1e-12)
    # Whatever the progress, an outcome of 1 beats one of 0.
    assert (earned_E >= 0).all() and (earned_E < 1).all()


def test_more_progress_never_earns_less_and_the_step_is_at_the_tier():
    progress = np.linspace(0, 1, 101)
    batch = TurnBatch.from_episodes([[0.0]] * 101, groups=[0] * 101, columns={"progress": progress[:, None].tolist()})
    tier_K = run(batch, TiersConfig(tiers=((0.5, 0.25), (1.0, 1.0)), alpha=0.5))[0].parts["tier"]
    np.testing.assert_array_equal(tier_K, [0.0] * 50 + [0.125] * 50 + [0.5])


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"alpha": 1.0}, "alpha 1.0 is not below gap 1.0"),
        ({"tiers": ((0.5, 0.5), (0.5, 0.75))}, r"\(0.5, 0.75\) must be above"),
        ({"tiers": ((0.5, 0.5), (0.75, 0.25))}, "must be above"),
        ({"tiers": ((0.5, 0.5), (1.5, 0.75))}, r"within \(1, 1\)"),
    ],
)
def test_tiers_that_would_put_failure_first_are_refused(changes, told):
    with pytest.raises(ConfigError, match=told):
        TiersConfig(**changes)


def test_an_environment_without_progress_is_told_so():
    batch = TurnBatch.from_episodes([[0, 1]], groups=[0], columns={"progress": [[float("nan")] * 2]})
    with pytest.raises(ValueError, match=r"override progress\(\)"):
        run(batch, "tiers")


# ---- overlong ---------------------------------------------------------------------------------------------------


@quick
@given(batch=batches(), max_tokens=st.integers(1, 12), share=st.floats(0.01, 1), factor=st.floats(0.1, 4))
def test_length_costs_nothing_below_the_buffer_and_at_most_the_factor(batch, max_tokens, share, factor):
    config = OverlongConfig(max_tokens=max_tokens, buffer=max(1, int(share * max_tokens)), factor=factor)
    tokens_E = sums_E(batch, batch.tokens_K.astype(float))
    taken_E = -sums_E(batch, run(batch, config)[0].parts["overlong"])
    assert (taken_E[tokens_E <= max_tokens - config.buffer] == 0).all()
    assert (taken_E[tokens_E > max_tokens - config.buffer] > 0).all()
    np.testing.assert_allclose(taken_E[tokens_E >= max_tokens], factor)
    assert (np.diff(taken_E[np.argsort(tokens_E)]) >= -1e-12).all()


@quick
@given(batch=batches(), over=st.sampled_from(["reply", "episode"]), most=st.integers(1, 12), share=st.floats(0.05, 1))
def test_a_share_of_what_is_allowed_is_that_many_tokens(batch, over, most, share):
    batch = replace(batch, columns={f"longest_{over}": np.full(len(batch.turn_K), float(most))})
    tokens_K, charged_K = batch.tokens_K.astype(float), np.full(len(batch.turn_K), True)
    if over == "episode":
        tokens_K, charged_K = sums_E(batch, tokens_K)[batch.episode_K], last_K(batch)
    free = share * most * (1 - 0.2)
    expected_K = np.where(charged_K, -np.clip((tokens_K - free) / (share * most * 0.2), 0, 1), 0.0)
    taken = run(batch, {"name": "overlong", "over": over, "share": share})[0]
    np.testing.assert_allclose(taken.parts["overlong"], expected_K, atol=1e-9)


def test_half_of_an_absolute_limit_is_refused():
    with pytest.raises(ConfigError, match="max_tokens and buffer belong together"):
        OverlongConfig(max_tokens=4)
    with pytest.raises(ConfigError, match="share has no effect with max_tokens = 4: leave it out"):
        OverlongConfig(max_tokens=4, buffer=2, share=0.5)


def test_a_buffer_longer_than_the_limit_is_refused():
    with pytest.raises(ConfigError, match="buffer 5 is above max_tokens 4"):
        OverlongConfig(max_tokens=4, buffer=5)


# ---- gated behind spa -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("threshold", [1.0, -1.0, 3e4])
def test_rounding_of_what_spa_pays_out_neither_opens_nor_closes_a_gate(threshold):
    """Of episodes that earn exactly the threshold some sum to a little less, some to a little more."""
    contributions = np.random.default_rng(0).normal(size=(200, 9)).tolist()
    columns = {"contribution": contributions}
    batch = TurnBatch.from_episodes([[0.0] * 8 + [threshold]] * 200, groups=[0] * 200, columns=columns)
    paid = run(batch, SpaConfig(beta=0.0))[0]
    sum_E = sums_E(paid, paid.parts["contribution"])
    assert (sum_E < threshold).any() and (sum_E > threshold).any(), "or there is no rounding to look through"
    for moved, opens, closes in ((0.0, 1, 0), (-1e-6, 0, 0), (1e-6, 1, 1)):
        gates = ({"part": "contribution", "threshold": threshold - moved * abs(threshold)},)
        for equal, share in (("opens", opens), ("closes", closes)):
            assert run(paid, GatedConfig(gates=gates, equal=equal))[1]["open_gates"] == share
