"""Advantages along graphs, trees and branches of situations, against golden files."""

from dataclasses import replace

import numpy as np
from golden_advantages import FLAT, PARITY, flat, turns
from golden_frame import Case, close, golden

from manyturn.trainers.credit.advantages.g2po import G2poConfig, edge_values
from manyturn.trainers.credit.advantages.graphgpo import GraphgpoConfig
from manyturn.trainers.credit.advantages.hgpo import HgpoConfig
from manyturn.trainers.credit.batch.turn_batch import TurnBatch, ids_of
from manyturn.trainers.credit.groups.group_statistics import group_statistics
from manyturn.trainers.credit.groups.situation_graph import distances
from manyturn.trainers.credit.groups.situations import situations
from manyturn.trainers.credit.groups.two_level_advantage import two_levels
from manyturn.trainers.credit.pipeline import CreditConfig, credit

PAYS = 10.0  # what a success pays there, where ours pays 1


def rows_of_ten(case: Case) -> TurnBatch:
    """Rows with a reward each, and what a reply that cannot be read is charged."""
    inputs, coef = case["inputs"], case["params"]["invalid_action_penalty_coef"]
    penalty_K = coef * ~np.array(inputs["is_action_valid"])
    return turns(inputs, np.array(inputs["step_env_reward"]), inputs["traj_index"], penalty_K=penalty_K)


def std_of(case: Case) -> Case:
    params = case["params"]
    with_std = {"eps": params["epsilon"], **FLAT} if params["mode"] == "mean_std_norm" else {}
    return {**PARITY, "mode": params["mode"], **with_std}


def not_of_rounding(case: Case, pairs: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Turns (K) whose values spread in each of their groups: in float32 an error of rounding is divided by eps."""
    spread = [~flat(value_K, group_K) for value_K, group_K in pairs]
    return np.logical_and.reduce(spread) | (case["params"]["mode"] == "mean_norm")


@golden("graphgpo")
def check_graphgpo(case: Case) -> None:
    """Their x is 10 gamma^d, of which the penalty is taken."""
    params, expected, batch = case["params"], case["expected"], rows_of_ten(case)
    config = GraphgpoConfig(
        **std_of(case), goal=PAYS, turn_weight=params["step_advantage_w"], episode_weight=params["episode_advantage_w"]
    )
    situation_K = situations(batch, config)
    here_K, there_K = distances(batch, situation_K, config.goal)
    near_K = params["gamma"] ** (there_K - here_K + 1 if params["normalize_distance"] else there_K)
    close(case, PAYS * near_K, expected["step_returns"])
    judged_K, score_K = PAYS * near_K - batch.penalty_K, batch.score_K()
    levels = two_levels(batch, score_K, judged_K, situation_K, config).levels
    total_K = config.episode_weight * levels["episode"] + config.turn_weight * levels["turn"]
    told_K = not_of_rounding(case, [(score_K, batch.group_K), (judged_K, situation_K)])
    close(case, total_K[told_K], np.array(expected["advantages"])[told_K])
    # The function itself, where the scale of x does not matter.
    if params["mode"] == "mean_std_norm" and not params["invalid_action_penalty_coef"]:
        measure = "progress" if params["normalize_distance"] else "distance"
        full = config.model_copy(update={"eps": 0.0, "measure": measure, "gamma": params["gamma"]})
        found_K = credit(batch, CreditConfig(advantage=full)).advantage_K
        std_K = group_statistics(judged_K, situation_K, batch.scorable_K).std_K
        sure_K = told_K & ((std_K > 1e-2) | (std_K == 0))  # where eps is nothing next to it
        np.testing.assert_allclose(found_K[sure_K], np.array(expected["advantages"])[sure_K], rtol=2e-4, atol=2e-4)


@golden("g2po")
def check_g2po(case: Case) -> None:
    params, expected, batch = case["params"], case["expected"], rows_of_ten(case)
    config = G2poConfig(**std_of(case), turn_weight=params["step_advantage_w"], gamma=params["gamma"])
    situation_K = situations(batch, config)
    reached_K, value_K = edge_values(batch, situation_K, config.gamma)
    close(case, value_K, expected["node_values"])
    result = credit(batch, CreditConfig(advantage=config))
    judged_K, gain_K = reached_K - batch.penalty_K, reached_K - value_K
    turn_pairs = [(judged_K, situation_K), (gain_K, batch.group_K)]
    told_K = not_of_rounding(case, turn_pairs)
    turn_K = result.levels["node"] + result.levels["edge"]
    close(case, turn_K[told_K], np.array(expected["step_advantages"])[told_K])
    told_K = not_of_rounding(case, [*turn_pairs, (batch.score_K(), batch.group_K)])
    close(case, result.advantage_K[told_K], np.array(expected["advantages"])[told_K])


@golden("hgpo")
def check_hgpo(case: Case) -> None:
    params, batch = case["params"], rows_of_ten(case)
    config = HgpoConfig(
        mode=params["mode"],
        history=params["history_length"],
        alpha=params["length_weight_alpha"],
        gamma=params["gamma"],
        **({"episodes": True, **PARITY} if params["base_group"] else {}),
    )
    found_K = credit(batch, CreditConfig(advantage=config)).advantage_K
    close(case, found_K, case["expected"]["advantages"])


@golden("rtmc_thirdparty")
def check_rtmc(case: Case) -> None:
    """Their group of one is compared with itself; ours is 0."""
    inputs, params = case["inputs"], case["params"]
    batch = turns(inputs, np.array(inputs["step_env_reward"]), inputs["traj_index"])
    batch = replace(batch, columns={"action": ids_of(inputs["action"])})
    options = {"gamma": params["gamma"], "prior": params["n_prior"], "std": params["normalize"]}
    found_K = credit(batch, CreditConfig(advantage={"name": "rtmc", **options})).advantage_K
    if len(batch.truncated_E) > 1:
        close(case, found_K, case["expected"]["advantages"])
    else:
        assert not found_K.any()


@golden("c3_baselines")
def check_forks(case: Case) -> None:
    """Replies that were drawn from one past, each with what came of it."""
    values = case["inputs"]["values"]
    drawers = {"drawer": [[member] for member in range(len(values))]}
    batch = TurnBatch.from_episodes([[value] for value in values], [0] * len(values), columns=drawers)
    for baseline, theirs in case["expected"].items():
        found_K = credit(batch, CreditConfig(advantage={"name": "forks", "baseline": baseline})).advantage_K
        close(case, found_K, theirs)
