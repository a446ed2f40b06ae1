"""Advantages against golden files. Rows of a file are model calls, which are turns here; a file without trajectories
has one turn per episode."""

from typing import Any

import numpy as np
from golden_frame import Case, close, golden

from manyturn.trainers.advantages.gigpo import GigpoConfig, anchor_groups, two_levels
from manyturn.trainers.credit import CreditConfig, credit
from manyturn.trainers.rewards.invalid_penalty import InvalidPenaltyConfig
from manyturn.trainers.turn_batch import TurnBatch, ids_of

PARITY = {"stats_over": "rows", "singleton": "raw"}


def on_tokens(case: Case, advantage_K: np.ndarray) -> np.ndarray:
    return advantage_K[:, None] * np.array(case["inputs"]["response_mask"])


def turns(
    inputs: Case, reward_K: Any, trajectory_K: list[str] | None = None, penalty_K: Any = None, valid_K: Any = None
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
    return TurnBatch(
        group_K=ids_of(inputs["group_index"]),
        episode_K=episode_K,
        turn_K=np.array(turn_K),
        parts={"outcome": reward_K},
        valid_K=np.ones(K, bool) if valid_K is None else valid_K,
        tokens_K=np.ones(K, int),
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


def stats_over(case: Case) -> str:
    return "rows" if case["params"].get("stats_over_rows", True) else "episodes"


@golden("grpo")
@golden("grpo_multirow")
def check_grpo(case: Case) -> None:
    params = case["params"]
    options: Case = {"std": params["norm_by_std"], "singleton": "raw", "stats_over": stats_over(case)}
    if params["norm_by_std"]:
        options["eps"] = params["epsilon"]
    result = credit(scored_turns(case), CreditConfig(advantage={"name": "grpo", **options}))
    close(case, on_tokens(case, result.advantage_K), case["expected"]["advantages"])


@golden("rloo")
@golden("rloo_multirow")
def check_rloo(case: Case) -> None:
    config = {"name": "rloo", "singleton": "raw", "stats_over": stats_over(case)}
    result = credit(scored_turns(case), CreditConfig(advantage=config))
    close(case, on_tokens(case, result.advantage_K), case["expected"]["advantages"])


def gigpo_config(case: Case, **changes: Any) -> GigpoConfig:
    params = case["params"]
    options = {**PARITY, "mode": params["mode"], "step_weight": params["step_advantage_w"], **changes}
    if params["mode"] == "mean_std_norm":
        options["eps"] = params["epsilon"]
    if params.get("enable_similarity"):
        options["similarity"] = params["similarity_thresh"]
    return GigpoConfig(**options)


@golden("gigpo")
def check_gigpo(case: Case) -> None:
    expected, config, batch = case["expected"], gigpo_config(case), scored_turns(case)
    cluster_K = anchor_groups(batch, config.similarity)
    assert cluster_K.tolist() == expected["step_group"]
    # The file draws step returns apart from scores, which no reward sequence has: hence not the whole function.
    return_K = np.array(case["inputs"]["step_rewards"])
    total_K, levels, *_ = two_levels(batch, batch.score_K(), return_K, cluster_K, config)
    close(case, on_tokens(case, total_K), expected["advantages"])
    close(case, on_tokens(case, levels["episode"]), expected["episode_advantages"])
    close(case, on_tokens(case, levels["step"]), expected["step_advantages"])

    config = gigpo_config(case, stats_over="episodes")
    episode_K = two_levels(batch, batch.score_K(), return_K, cluster_K, config).levels["episode"]
    theirs = np.array(expected["episode_advantages_per_trajectory_stats"])
    # Where all episodes score alike and one turn has a penalty, the reference divides the penalty by eps alone.
    theirs[abs(theirs) > 1e4] *= case["params"]["epsilon"]
    close(case, on_tokens(case, episode_K), theirs)


@golden("gigpo_grouping")
def check_gigpo_grouping(case: Case) -> None:
    inputs, params = dict(case["inputs"]), case["params"]
    if "obs_kind" in inputs:
        kinds = zip(inputs["anchor_obs"], inputs["obs_kind"], strict=True)
        inputs["anchor_obs"] = [np.array(anchor) if kind == "ndarray" else anchor for anchor, kind in kinds]
    batch = turns(inputs, np.zeros(len(inputs["anchor_obs"])))
    similarity = params["similarity_thresh"] if params["enable_similarity"] else None
    assert anchor_groups(batch, similarity).tolist() == case["expected"]["step_group"]


@golden("gigpo_step_returns")
def check_gigpo_step_returns(case: Case) -> None:
    inputs = case["inputs"]
    inputs = {**inputs, "group_index": [name[:2] for name in inputs["traj_index"]]}
    batch = turns(inputs, np.array(inputs["rewards"]), inputs["traj_index"])
    close(case, batch.step_return_K(case["params"]["gamma"]), case["expected"]["step_returns"])


@golden("gigpo_pipeline")
def check_gigpo_pipeline(case: Case) -> None:
    inputs, params, expected = case["inputs"], case["params"], case["expected"]
    batch = turns(
        inputs, np.array(inputs["step_env_reward"]), inputs["traj_index"], valid_K=np.array(inputs["is_action_valid"])
    )
    assert batch.turn_K.tolist() == inputs["step_in_traj"]
    close(case, batch.episode_return_E()[batch.episode_K], inputs["episode_reward"])
    close(case, batch.step_return_K(params["gamma"]), expected["step_returns_before_penalty"])
    coef = params["invalid_action_penalty_coef"]
    rewards = [InvalidPenaltyConfig(coef=coef)] if coef else []
    result = credit(batch, CreditConfig(rewards=rewards, advantage=gigpo_config(case, gamma=params["gamma"])))
    close(case, result.batch.score_K(), np.sum(expected["token_level_scores_after_penalty"], axis=1))
    close(case, result.batch.step_return_K(params["gamma"]), expected["step_rewards_after_penalty"])
    close(case, on_tokens(case, result.advantage_K), expected["advantages"])
