"""Advantages against golden files. Rows of a file are model calls, which are turns here; a file
without trajectories has one turn per episode."""

from dataclasses import replace
from typing import Any

import numpy as np
from golden_frame import Case, close, golden
from golden_objectives import check_loop_loss, check_pairs

from manyturn.envs.contract.random_keys import digest
from manyturn.trainers.credit.advantages.gigpo import GigpoConfig
from manyturn.trainers.credit.advantages.igpo import IgpoConfig, igpo, returns_compared
from manyturn.trainers.credit.advantages.istar import IstarConfig, istar
from manyturn.trainers.credit.advantages.reinforce_pp import token_returns
from manyturn.trainers.credit.advantages.riskpo import RiskpoConfig, riskpo
from manyturn.trainers.credit.advantages.spo import SpoConfig, first_memory, kept_share, task_weights
from manyturn.trainers.credit.batch.backward_recursion import Timeline
from manyturn.trainers.credit.batch.episode_sums import last_K
from manyturn.trainers.credit.batch.reply_tokens import whitened
from manyturn.trainers.credit.batch.turn_batch import TurnBatch, ids_of
from manyturn.trainers.credit.groups.gae_recursion import estimate
from manyturn.trainers.credit.groups.group_statistics import counted, group_statistics
from manyturn.trainers.credit.groups.situations import situations
from manyturn.trainers.credit.groups.two_level_advantage import two_levels
from manyturn.trainers.credit.pipeline import CreditConfig, credit
from manyturn.trainers.credit.rewards.invalid_penalty import InvalidPenaltyConfig

PARITY = {"stats_over": "rows", "singleton": "raw"}
FLAT = {"flat_std": "zero"}  # their code divides by eps alone where a group has no spread


def on_tokens(case: Case, advantage_K: np.ndarray) -> np.ndarray:
    return advantage_K[:, None] * np.array(case["inputs"]["response_mask"])


def turns(
    inputs: Case,
    reward_K: Any,
    trajectory_K: list[str] | None = None,
    penalty_K: Any = None,
    format_valid_K: Any = None,
) -> TurnBatch:
    """Rows of a golden file as a batch; without trajectories each row is an episode."""
    K = len(reward_K)
    episode_K = np.arange(K) if trajectory_K is None else ids_of(trajectory_K)
    seen: dict[int, int] = {}
    turn_K = []
    for episode in episode_K.tolist():
        turn_K.append(seen.get(episode, 0))
        seen[episode] = turn_K[-1] + 1
    anchors = inputs.get("anchor_obs")
    mask = np.array(inputs.get("response_mask", np.ones((K, 1), int)))
    return TurnBatch(
        group_K=ids_of(inputs.get("group_index", np.arange(K).tolist())),
        episode_K=episode_K,
        turn_K=np.array(turn_K),
        parts={"outcome": reward_K},
        format_valid_K=np.ones(K, bool) if format_valid_K is None else format_valid_K,
        understood_K=np.ones(K, bool),
        tokens_K=mask.sum(axis=1),
        truncated_E=np.zeros(len(seen), bool),
        anchor_K=None if anchors is None else ids_of(anchors),
        anchor_text=None if anchors is None else tuple(anchors),
        penalty_K=penalty_K,
    )


def scored_turns(case: Case) -> TurnBatch:
    """Rows with a score each. Rows of one trajectory share its return and differ by penalties alone."""
    inputs = case["inputs"]
    score_K = np.sum(inputs["token_level_rewards"], axis=1)
    if "traj_index" not in inputs:
        return turns(inputs, score_K)
    episode_K = ids_of(inputs["traj_index"])
    return_E = np.full(episode_K.max() + 1, -np.inf)
    np.maximum.at(return_E, episode_K, score_K)
    _, last_K = np.unique(episode_K[::-1], return_index=True)
    reward_K = np.zeros(len(score_K))
    reward_K[len(score_K) - 1 - last_K] = return_E
    batch = turns(inputs, reward_K, inputs["traj_index"], penalty_K=return_E[episode_K] - score_K)
    np.testing.assert_allclose(batch.score_K(), score_K, atol=1e-12)
    return batch


def flat(value_K: np.ndarray, group_K: np.ndarray) -> np.ndarray:
    """Which turns (K) are of a group of several that have one value."""
    flat_K = np.zeros(len(value_K), bool)
    for group in np.unique(group_K):
        values = value_K[group_K == group]
        flat_K[group_K == group] = len(values) > 1 and values.min() == values.max()
    return flat_K


def stats_over(case: Case) -> str:
    return "rows" if case["params"].get("stats_over_rows", True) else "first_rows"


@golden("grpo")
@golden("grpo_multirow")
def check_grpo(case: Case) -> None:
    params = case["params"]
    options: Case = {"std": params["norm_by_std"], "singleton": "raw", "stats_over": stats_over(case)}
    if params["norm_by_std"]:
        options |= {"eps": params["epsilon"], **FLAT}
    batch = scored_turns(case)
    advantage_K = credit(batch, CreditConfig(advantage={"name": "grpo", **options})).advantage_K
    close(case, on_tokens(case, advantage_K), case["expected"]["advantages"])
    several_K = group_statistics(batch.score_K(), batch.group_K, counted(batch, options["stats_over"])).count_K > 1
    assert not advantage_K[several_K & flat(batch.score_K(), batch.group_K)].any(), "exactly 0, not nearly so"


@golden("rloo")
@golden("rloo_multirow")
def check_rloo(case: Case) -> None:
    config = {"name": "rloo", "singleton": "raw", "stats_over": stats_over(case)}
    result = credit(scored_turns(case), CreditConfig(advantage=config))
    close(case, on_tokens(case, result.advantage_K), case["expected"]["advantages"])


def gigpo_config(case: Case, **changes: Any) -> GigpoConfig:
    params = case["params"]
    options = {**PARITY, "mode": params["mode"], "turn_weight": params["step_advantage_w"], **changes}
    if params["mode"] == "mean_std_norm":
        options |= {"eps": params["epsilon"], **FLAT}
    if params.get("enable_similarity"):
        options["similarity"] = params["similarity_thresh"]
    return GigpoConfig(**options)


@golden("gigpo")
def check_gigpo(case: Case) -> None:
    expected, config, batch = case["expected"], gigpo_config(case), scored_turns(case)
    cluster_K = situations(batch, config)
    assert cluster_K.tolist() == expected["step_group"]
    # The file draws step returns apart from scores, which no reward sequence has: hence not the whole function.
    return_K = np.array(case["inputs"]["step_rewards"])
    total_K, levels, *_ = two_levels(batch, batch.score_K(), return_K, cluster_K, config)
    close(case, on_tokens(case, levels["episode"]), expected["episode_advantages"])
    close(case, on_tokens(case, levels["turn"]), expected["step_advantages"])
    close(case, on_tokens(case, total_K), expected["advantages"])
    assert not levels["episode"][flat(batch.score_K(), batch.group_K)].any(), "exactly 0, not nearly so"
    assert not levels["turn"][flat(return_K, cluster_K)].any()

    config = gigpo_config(case, stats_over="first_rows")
    episode_K = two_levels(batch, batch.score_K(), return_K, cluster_K, config).levels["episode"]
    close(case, on_tokens(case, episode_K), expected["episode_advantages_per_trajectory_stats"])


@golden("gigpo_grouping")
def check_gigpo_grouping(case: Case) -> None:
    inputs, params = dict(case["inputs"]), case["params"]
    if "obs_kind" in inputs:
        kinds = zip(inputs["anchor_obs"], inputs["obs_kind"], strict=True)
        inputs["anchor_obs"] = [np.array(anchor) if kind == "ndarray" else anchor for anchor, kind in kinds]
    batch = turns(inputs, np.zeros(len(inputs["anchor_obs"])))
    config = GigpoConfig(similarity=params["similarity_thresh"] if params["enable_similarity"] else None)
    assert situations(batch, config).tolist() == case["expected"]["step_group"]


@golden("gigpo_step_returns")
def check_gigpo_step_returns(case: Case) -> None:
    inputs = case["inputs"]
    inputs = {**inputs, "group_index": [name[:2] for name in inputs["traj_index"]]}
    batch = turns(inputs, np.array(inputs["rewards"]), inputs["traj_index"])
    close(case, batch.turn_return_K(case["params"]["gamma"]), case["expected"]["step_returns"])


@golden("gigpo_pipeline")
def check_gigpo_pipeline(case: Case) -> None:
    inputs, params, expected = case["inputs"], case["params"], case["expected"]
    batch = turns(
        inputs,
        np.array(inputs["step_env_reward"]),
        inputs["traj_index"],
        format_valid_K=np.array(inputs["is_action_valid"]),
    )
    assert batch.turn_K.tolist() == inputs["step_in_traj"]
    close(case, batch.episode_return_E()[batch.episode_K], inputs["episode_reward"])
    close(case, batch.turn_return_K(params["gamma"]), expected["step_returns_before_penalty"])
    coef = params["invalid_action_penalty_coef"]
    rewards = [InvalidPenaltyConfig(coef=coef)] if coef else []
    config = gigpo_config(case, gamma=params["gamma"])
    result = credit(batch, CreditConfig(rewards=rewards, advantage=config))
    score_K, return_K = result.batch.score_K(), result.batch.turn_return_K(params["gamma"])
    close(case, score_K, np.sum(expected["token_level_scores_after_penalty"], axis=1))
    close(case, return_K, expected["step_rewards_after_penalty"])
    cluster_K = situations(batch, config)
    flat_K, same_K = flat(score_K, batch.group_K), flat(return_K, cluster_K)
    # In float32 the rounding error of equal scores, divided by eps, is an advantage like any other.
    compared_K = ~(flat_K | same_K) | (config.mode == "mean_norm")
    close(case, on_tokens(case, result.advantage_K)[compared_K], np.array(expected["advantages"])[compared_K])


@golden("dr_grpo_oat")
def check_dr_grpo(case: Case) -> None:
    params = case["params"]
    reward_K = np.sum(case["inputs"]["rewards"], axis=1)
    batch = turns({"group_index": (np.arange(len(reward_K)) // params["num_samples"]).tolist()}, reward_K)
    options: Case = {"std": False} if params["critic_type"] == "drgrpo" else {"eps": params["epsilon"], **FLAT}
    advantage_K = credit(batch, CreditConfig(advantage={"name": "grpo", **options})).advantage_K
    close(case, advantage_K, case["expected"]["advantages"])
    assert not advantage_K[flat(reward_K, batch.group_K)].any(), "exactly 0, not nearly so"


@golden("opo")
def check_opo(case: Case) -> None:
    result = credit(scored_turns(case), CreditConfig(advantage={"name": "opo", "singleton": "raw"}))
    close(case, on_tokens(case, result.advantage_K), case["expected"]["advantages"])


@golden("loop")
def check_loop(case: Case) -> None:
    if "returns_per_scenario" not in case["inputs"]:
        check_loop_loss(case)
        return
    scenarios = case["inputs"]["returns_per_scenario"]
    sizes = [len(returns) for returns in scenarios]
    batch = turns({"group_index": np.repeat(np.arange(len(sizes)), sizes).tolist()}, np.concatenate(scenarios))
    std = case["params"]["adv_normalization"]
    config = CreditConfig(advantage={"name": "loop", "std": std, "threshold": 0.0})
    advantage_K = credit(batch, config).advantage_K
    close(case, advantage_K, case["expected"]["leave_one_out"])
    share_K = np.repeat([(n - 1) / n for n in sizes], sizes)
    close(case, advantage_K * share_K, case["expected"]["leave_none_out"])


@golden("stratified_grpo_formula")
def check_stratified(case: Case) -> None:
    inputs, params, expected = case["inputs"], case["params"], case["expected"]
    batch = turns({"group_index": ["g"] * len(inputs["rewards"])}, inputs["rewards"])
    batch = replace(batch, columns={"calls": inputs["stratum"]})
    options = {"stratum": "calls", "blend": params["blend_alpha"], "eps": params["epsilon"]}
    result = credit(batch, CreditConfig(advantage={"name": "stratified", **options}))
    close(case, result.levels["stratum"], expected["san"])
    close(case, result.levels["group"], expected["global_norm"])
    close(case, result.advantage_K, expected["blended"])


@golden("reinforce_plus_plus_baseline")
def check_reinforce_pp_baseline(case: Case) -> None:
    config = CreditConfig(advantage={"name": "reinforce_pp_baseline", "singleton": "raw"})
    advantage_K, theirs = credit(scored_turns(case), config).advantage_K, np.array(case["expected"]["advantages"])
    if not advantage_K.any():
        # All tokens have one value: the 1e-8 in the denominator of the reference's mean leaves 5e-5 of it.
        assert np.abs(theirs).max() < 1e-4
        return
    close(case, on_tokens(case, advantage_K), theirs)


def token_batch(case: Case, mask: str = "response_mask") -> TurnBatch:
    """A row is an episode of one turn, whose rewards are all on tokens; positions outside the mask are no tokens."""
    inputs = {**case["inputs"], "response_mask": case["inputs"][mask]}
    mask_BL = np.array(inputs["response_mask"], bool)
    columns = {"reward": np.array(inputs["token_level_rewards"])[mask_BL]}
    if "values" in inputs:
        columns["value"] = np.array(inputs["values"])[mask_BL]
    return replace(turns(inputs, np.zeros(len(mask_BL))), token_columns=columns)


def at_tokens(case: Case, name: str, mask: str = "response_mask") -> np.ndarray:
    return np.array(case["expected"][name])[np.array(case["inputs"][mask], bool)]


@golden("reinforce_plus_plus")
def check_reinforce_pp(case: Case) -> None:
    batch, gamma = token_batch(case), case["params"]["gamma"]
    close(case, token_returns(batch, gamma), at_tokens(case, "returns"))
    result = credit(batch, CreditConfig(advantage={"name": "reinforce_pp", "gamma": gamma}))
    close(case, result.token_T, at_tokens(case, "advantages"))


@golden("gae_masked")
def check_gae(case: Case) -> None:
    options = {"gamma": case["params"]["gamma"], "lam": case["params"]["lam"]}
    result = credit(token_batch(case), CreditConfig(advantage={"name": "gae", **options}))
    close(case, result.targets_T, at_tokens(case, "returns"))
    close(case, result.token_T, at_tokens(case, "advantages"))


@golden("gae_plain")
def check_gae_at_every_position(case: Case) -> None:
    """The older code takes a step at every position and uses the mask to whiten alone."""
    inputs, params = case["inputs"], case["params"]
    reward_BL, value_BL = np.array(inputs["token_level_rewards"]), np.array(inputs["values"])
    B, L = value_BL.shape
    line = Timeline.of(np.repeat(np.arange(B), L), np.tile(np.arange(L), B))
    advantage_N = estimate(line, reward_BL.ravel(), value_BL.ravel(), params["gamma"], params["lam"], np.zeros(B * L))
    close(case, advantage_N + value_BL.ravel(), np.ravel(case["expected"]["returns"]))
    mask_N = np.ravel(inputs["response_mask"])
    said_N = mask_N == 1
    close(case, whitened(advantage_N, mask_N)[said_N], np.ravel(case["expected"]["advantages"])[said_N])


@golden("gae_turn_level")
def check_turn_gae(case: Case) -> None:
    inputs, params, expected = case["inputs"], case["params"], case["expected"]
    mask_KL = np.array(inputs["response_mask"], bool)
    K = len(mask_KL)
    batch = TurnBatch(
        group_K=np.array(inputs["group_idx"]),
        episode_K=np.array(inputs["traj_idx"]),
        turn_K=np.array(inputs["turn_idx"]),
        parts={"outcome": np.sum(inputs["token_level_scores"], axis=1)},
        format_valid_K=np.ones(K, bool),
        understood_K=np.ones(K, bool),
        tokens_K=mask_KL.sum(axis=1),
        truncated_E=np.zeros(max(inputs["traj_idx"]) + 1, bool),
        token_columns={"value": np.array(inputs["values"])[mask_KL]},
    )
    config = {"name": "turn_gae", "gamma": params["gamma"], "lam": params["lam"], "value_at": "last"}
    result = credit(batch, CreditConfig(advantage=config))
    close(case, on_tokens(case, result.advantage_K), np.array(expected["advantages"]) * mask_KL)
    targets_KL = np.full(mask_KL.shape, np.nan)
    targets_KL[mask_KL] = result.targets_T
    close(case, np.nan_to_num(targets_KL, nan=params["ignore_value"]), expected["returns"])


@golden("gae_bilevel")
def check_bilevel_gae(case: Case) -> None:
    """A turn's reward is on its last token: a position inside the mask with a reward."""
    inputs, params = case["inputs"], case["params"]
    mask_BL, reward_BL = np.array(inputs["loss_mask"], bool), np.array(inputs["token_level_rewards"])
    rewards, tokens, values = [], [], []
    for mask_L, reward_L, value_L in zip(mask_BL, reward_BL, np.array(inputs["values"]), strict=True):
        said_reward, said_value = reward_L[mask_L], value_L[mask_L]
        ends = np.flatnonzero(said_reward) + 1
        assert ends[-1] == len(said_reward)
        rewards.append(said_reward[ends - 1].tolist())
        tokens.append(np.diff(ends, prepend=0).tolist())
        values.append(np.split(said_value, ends[:-1]))
    batch = TurnBatch.from_episodes(rewards, range(len(rewards)), tokens=tokens, token_columns={"value": values})
    options = {"gamma": params["gamma"], "lam": params["lam"], "gamma_turn": params["high_level_gamma"]}
    result = credit(batch, CreditConfig(advantage={"name": "bilevel_gae", **options}))
    close(case, result.targets_T, at_tokens(case, "returns", "loss_mask"))
    close(case, result.token_T, at_tokens(case, "advantages", "loss_mask"))


@golden("igpo")
def check_igpo(case: Case) -> None:
    """The code compares positions, which are turns here, and lets no return reach back over one outside the mask."""
    inputs, expected = case["inputs"], case["expected"]
    mask_BL, reward_BL = np.array(inputs["response_mask"], bool), np.array(inputs["token_level_rewards"])
    B, L = mask_BL.shape
    rows = {"group_index": np.repeat(inputs["group_index"], L).tolist()}
    batch = turns(rows, reward_BL.ravel(), np.repeat(np.arange(B), L).tolist())
    segment_N = np.cumsum(~mask_BL.ravel() | (batch.turn_K == 0))
    place_N = np.arange(B * L) - np.searchsorted(segment_N, segment_N)
    line = Timeline.of(segment_N, place_N)
    groups, members_B = np.unique(inputs["group_index"], return_inverse=True)
    several_B = np.bincount(members_B, minlength=len(groups))[members_B] > 1
    checked = mask_BL & several_B[:, None]  # in a group of one "first" is other than 0 there, and 0 here

    def check(name: str, gamma: float, **options: Any) -> None:
        return_N = line.to_go(reward_BL.ravel(), gamma)
        close(case, return_N.reshape(B, L)[mask_BL], np.array(expected[name]["returns"])[mask_BL])
        advantage_N = returns_compared(batch, return_N, IgpoConfig(**options))
        close(case, advantage_N.reshape(B, L)[checked], np.array(expected[name]["advantages"])[checked])

    check("default_training_path", 1.0, baseline="turn", std=False)
    for name in expected.keys() - {"default_training_path"}:
        gamma, norm = name.removeprefix("discounted_g").split("_")
        options = {"eps": case["params"]["epsilon"], **FLAT} if norm == "std" else {"std": False}
        check(name, float(gamma), baseline="first", **options)


@golden("igpo_turns")
def check_igpo_turns(case: Case) -> None:
    """Their scale is sqrt(variance of the population + 1e-8) + eps, ours the standard deviation of the sample + eps."""
    inputs = case["inputs"]
    batch = TurnBatch.from_episodes(inputs["turn_rewards"], groups=inputs["group_index"])
    line = Timeline.of(batch.episode_K, batch.turn_K)
    for name, theirs in case["expected"].items():
        baseline, gamma, norm = name.split("_")
        options = {"baseline": baseline, "gamma": float(gamma.removeprefix("g")), "std": norm == "std"}
        found_K, wanted_K = igpo(batch, IgpoConfig(**options)).total_K, np.concatenate(theirs)
        if norm == "std":
            like_K = 2 * batch.group_K + (baseline == "separate") * last_K(batch)
            count_K, _, std_K = group_statistics(batch.reward_K, like_K, batch.scorable_K)
            eps, variance_K = case["params"]["epsilon"], std_K**2 * (count_K - 1) / count_K
            normed_K = found_K - options["gamma"] * line.following(found_K, np.zeros(len(found_K)))
            found_K = line.to_go(normed_K * (std_K + eps) / (np.sqrt(variance_K + 1e-8) + eps), options["gamma"])
        close(case, found_K, wanted_K)


@golden("spo")
def check_spo(case: Case) -> None:
    inputs, params, expected = case["inputs"], case["params"], case["expected"]
    if "offline_binary_scores" in inputs:
        memory = first_memory(inputs["offline_binary_scores"], params["rho_min"])
        names = sorted(memory)
        for place, name in enumerate(("alpha", "beta")):
            close(case, [memory[task][place] for task in names], [expected[name][task] for task in names])
        weights = task_weights(memory, names, params["exploration_epsilon"])
        close(case, weights, [expected["sampling_weight"][task] for task in names])
        return
    mask = np.array(inputs["response_mask"])
    moved = np.abs(np.array(inputs["prev_policy_log_prob"]) - np.array(inputs["current_policy_log_prob"]))
    drift_K = (moved * mask).sum(axis=1) / mask.sum(axis=1)
    close(case, drift_K, expected["D"])
    names = [f"q{k}" for k in range(len(mask))]
    batch = replace(
        turns({**inputs, "group_index": names}, inputs["reward"]),
        columns={"drift": drift_K},
        group_names=dict(enumerate(names)),
    )
    options = {"half": params["D_half"], "rho_min": params["rho_min"], "rho_max": params["rho_max"]}
    config = SpoConfig(**options)
    close(case, kept_share(batch, config), expected["rho"])
    before = dict(zip(names, zip(inputs["alpha"], inputs["beta"], strict=True), strict=True))
    result = credit(batch, CreditConfig(advantage=config), {"advantage spo": before})
    close(case, on_tokens(case, result.advantage_K), expected["advantages"])
    after = np.array([result.memory["advantage spo"][name] for name in names])
    close(case, after, np.stack([expected["alpha_new"], expected["beta_new"]], axis=1))


@golden("istar")
def check_istar(case: Case) -> None:
    inputs = case["inputs"]
    if case["name"] == "pairs":
        check_pairs(case)
        return
    rewards = [[0.0] * (n - 1) + [total] for n, total in zip(inputs["lengths"], inputs["returns"], strict=True)]
    batch = TurnBatch.from_episodes(rewards, inputs["groups"])
    batch = replace(batch, columns={"implicit": inputs["implicit"]})
    config = IstarConfig(**case["params"], stats_over="first_rows", singleton="raw")
    close(case, istar(batch, config).total_K, case["expected"]["advantages"])


@golden("riskpo")
def check_riskpo(case: Case) -> None:
    """Their bundles are tasks that follow each other; ours follow each other by a hash of their names."""
    inputs, expected = case["inputs"], case["expected"]
    tasks, members = np.shape(inputs["scores"])
    names = sorted((f"task {n}" for n in range(tasks)), key=lambda name: digest("bundle", name))
    batch = TurnBatch.from_episodes(
        [[0.0, score] for row in inputs["scores"] for score in row], groups=np.repeat(names, members).tolist()
    )
    config = RiskpoConfig(bundle=inputs["bundles"].count(0), **case["params"])
    advantage, memory = riskpo(batch, config, {"quantiles": inputs["quantiles"]})
    close(case, advantage.total_K, np.repeat(np.ravel(expected["advantages"]), 2))
    close(case, memory["quantiles"], expected["quantiles"])


@golden("dpo")
def check_dpo(case: Case) -> None:
    """Each pair is a task with two episodes of a turn. IPO is CoPG where the better one earns a half more."""
    inputs, expected, beta = case["inputs"], case["expected"], case["params"]["beta"]
    chosen, rejected = (
        np.subtract(inputs[f"policy_{side}"], inputs[f"reference_{side}"]) for side in ("chosen", "rejected")
    )
    pairs, is_ipo = len(chosen), case["params"]["loss"] == "ipo"
    batch = TurnBatch.from_episodes(
        [[0.5 if is_ipo else 1.0], [0.0]] * pairs,
        groups=np.repeat(np.arange(pairs), 2).tolist(),
        anchors=[["x"]] * 2 * pairs,
        columns={"reference": np.ravel([chosen, rejected], "F")[:, None].tolist(), "action": [[0], [1]] * pairs},
    )
    gradient = -np.ravel([expected["gradient_chosen"], expected["gradient_rejected"]], "F")
    for name in ("copg",) if is_ipo else ("turn_dpo", "step_dpo", "agent_q"):
        earned = credit(batch, CreditConfig(advantage={"name": name, "beta": beta}))
        close(case, earned.advantage_K, beta / 2 * gradient if is_ipo else gradient)
        close(case, earned.diagnostics["pair_margin"], np.mean(expected["margins"]))
        close(case, earned.diagnostics["pairs_ranked"], np.mean(expected["accuracies"]))
